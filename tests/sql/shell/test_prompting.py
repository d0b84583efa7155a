"""The prompt, typed into through a pipe."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from sql.shell.prompting import Prompt, history_in
from sql.shell.shell import Shell
from tests.sql.shell.fakes import ID, GivenRows, GivenSession, shell_of

ENTER = "\r"
CTRL_C = "\x03"
CTRL_D = "\x04"
UP = "\x1b[A"
TAB = "\t"
PUSH = "SELECT * FROM orders EMIT CHANGES;"
ORDERS = {
    "@type": "source_descriptions",
    "sourceDescriptions": [
        {
            "name": "ORDERS",
            "type": "STREAM",
            "fields": [{"name": "AMOUNT", "schema": {"type": "INT"}}],
        }
    ],
}


@pytest.fixture
def typed() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def play(
    typed: PipeInput, keys: str, session: GivenSession, history: Path | None = None
) -> tuple[Shell, StringIO]:
    shell, written = shell_of(session)
    typed.send_text(keys)
    kept = InMemoryHistory() if history is None else history_in(history)
    Prompt(shell, kept, typed=typed, drawn=DummyOutput()).run()
    return shell, written


def test_lines_are_one_statement_until_its_semicolon(typed: PipeInput) -> None:
    session = GivenSession()
    play(typed, f"SHOW{ENTER}STREAMS{ENTER};{ENTER}SHOW TABLES;{ENTER}{CTRL_D}", session)
    assert session.executed == ["SHOW\nSTREAMS\n;", "SHOW TABLES;"]


def test_commands_need_no_semicolon_and_exit_leaves(typed: PipeInput) -> None:
    session = GivenSession()
    _, written = play(typed, f"version{ENTER}exit{ENTER}", session)
    assert written.getvalue() == "1.2.3\n"
    assert session.executed == []


def test_ctrl_c_throws_away_what_was_typed(typed: PipeInput) -> None:
    session = GivenSession()
    play(typed, f"SHOW{ENTER}NONSENSE{CTRL_C}SHOW TABLES;{ENTER}{CTRL_D}", session)
    assert session.executed == ["SHOW TABLES;"]


def test_ctrl_c_stops_a_running_query_and_the_prompt_comes_back(typed: PipeInput) -> None:
    rows = GivenRows([ID], [["a"]], interrupted=True)
    session = GivenSession(answers={PUSH: rows})
    _, written = play(typed, f"{PUSH}{ENTER}SHOW TABLES;{ENTER}{CTRL_D}", session)
    assert rows.closed
    assert "Query terminated, 1 row" in written.getvalue()
    assert session.executed == [PUSH, "SHOW TABLES;"]


def test_an_error_is_shown_and_the_prompt_comes_back(typed: PipeInput) -> None:
    session = GivenSession()
    _, written = play(typed, f"SELECT 1;{ENTER}SHOW TABLES;{ENTER}{CTRL_D}", session)
    assert written.getvalue().startswith("error: no such query")
    assert session.executed[-1] == "SHOW TABLES;"


def test_statements_of_before_come_back_also_in_the_next_shell(
    typed: PipeInput, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "history"
    play(typed, f"SHOW{ENTER}TABLES;{ENTER}{CTRL_D}", GivenSession(), file)
    assert file.stat().st_mode & 0o077 == 0
    again = GivenSession()
    _, written = play(typed, f"{UP}{ENTER}history{ENTER}{CTRL_D}", again, file)
    assert again.executed == ["SHOW\nTABLES;"]
    assert written.getvalue() == "   1  SHOW\nTABLES;\n   2  history\n"


def test_a_history_that_cannot_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert isinstance(history_in(tmp_path / "file" / "history"), InMemoryHistory)


def test_tab_completes_a_name_of_the_catalog(typed: PipeInput) -> None:
    session = GivenSession({"DESCRIBE STREAMS;": [ORDERS]})
    shell, _ = shell_of(session)
    prompt = Prompt(shell, InMemoryHistory(), typed=typed, drawn=DummyOutput())

    def go_on(buffer: Buffer) -> None:
        if buffer.text == "DESCRIBE ORDERS":
            typed.send_text(f";{ENTER}{CTRL_D}")

    prompt._prompts.default_buffer.on_text_changed += go_on
    typed.send_text(f"DESCRIBE ORD{TAB}")
    prompt.run()
    assert session.executed[-1] == "DESCRIBE ORDERS;"
