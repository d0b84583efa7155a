"""The shell on a session whose answers are given."""

from io import StringIO
from pathlib import Path

import pytest

from sql.client import ServerFailed
from sql.errors import StatementFailed
from sql.shell.commands import run_command
from sql.shell.screen import Screen
from sql.shell.shell import CommandFailed, ExitShell, QueryLimits, Shell
from sql.syntax.statement_help import HELP
from tests.sql.shell.entities import ENTITIES
from tests.sql.shell.fakes import ID, TOTAL, GivenRows, GivenSession, shell_of

PULL = "SELECT * FROM totals;"
PUSH = "SELECT * FROM totals EMIT CHANGES;"
ROWS: list[list[object]] = [["a", 3], ["b", None]]
PULLED = """\
+--+-----+
|ID|TOTAL|
+--+-----+
|a |3    |
|b |null |
+--+-----+
2 rows
"""
PUSHED = """\
+----------------------------+----------------------------+
|ID                          |TOTAL                       |
+----------------------------+----------------------------+
|a                           |3                           |
|b                           |null                        |
"""


def answering(**answers: GivenRows) -> GivenSession:
    texts = {"pull": PULL, "push": PUSH}
    return GivenSession(answers={texts[name]: each for name, each in answers.items()})


def test_a_pull_query_is_a_table_that_fits_its_rows() -> None:
    shell, written = shell_of(answering(pull=GivenRows([ID, TOTAL], ROWS)))
    shell.run(PULL)
    assert written.getvalue() == PULLED


def test_a_pull_query_without_rows_has_its_header() -> None:
    shell, written = shell_of(answering(pull=GivenRows([ID, TOTAL], [])))
    shell.run(PULL)
    assert written.getvalue().splitlines()[1] == "|ID|TOTAL|"
    assert written.getvalue().endswith("0 rows\n")


def test_a_push_query_shows_its_header_before_any_row() -> None:
    answer = GivenRows([ID, TOTAL], ROWS, final_message="Limit Reached")
    shell, written = shell_of(answering(push=answer))
    shell.run(PUSH)
    assert written.getvalue().startswith(PUSHED)
    assert written.getvalue().endswith("Limit Reached, 2 rows\n")
    assert answer.closed


def test_ctrl_c_ends_a_push_query_and_not_the_shell() -> None:
    answer = GivenRows([ID, TOTAL], ROWS, interrupted=True)
    shell, written = shell_of(answering(push=answer, pull=GivenRows([ID], [["z"]])))
    shell.interactive = True
    shell.attempt(PUSH)
    assert written.getvalue() == f"{PUSHED}Query terminated, 2 rows\n"
    assert answer.closed
    shell.attempt(PULL)
    assert "|z |" in written.getvalue()


def test_ctrl_c_ends_a_script() -> None:
    answer = GivenRows([ID, TOTAL], ROWS, interrupted=True)
    shell, _ = shell_of(answering(push=answer))
    with pytest.raises(KeyboardInterrupt):
        shell.run(PUSH)
    assert answer.closed


def test_rows_are_lines_of_json_if_that_is_wanted() -> None:
    shell, written = shell_of(answering(pull=GivenRows([ID, TOTAL], ROWS)))
    shell.run(f"output json; {PULL}")
    assert written.getvalue().splitlines()[1:] == [
        '{"ID":"a","TOTAL":3}',
        '{"ID":"b","TOTAL":null}',
    ]


def test_limits_end_queries() -> None:
    session = answering(push=GivenRows([ID, TOTAL], ROWS))
    shell, written = shell_of(session, QueryLimits(rows=1, timeout_ms=250))
    shell.run(PUSH)
    assert written.getvalue().endswith("1 row\n")
    assert session.timeouts == [250]


def test_print_shows_lines() -> None:
    session = GivenSession(answers={"PRINT 't';": GivenRows([ID], [["key: a"], ["key: b"]])})
    shell, written = shell_of(session)
    shell.run("PRINT 't';")
    assert written.getvalue() == "key: a\nkey: b\n"


def test_settings_and_variables_go_with_every_statement() -> None:
    session = GivenSession()
    shell, written = shell_of(session)
    shell.run("DEFINE a = 'x'; SET 'known.one' = '${a}y'; SHOW STREAMS; UNDEFINE A;")
    shell.run("UNSET 'known.one'; SHOW STREAMS")
    assert [each.properties for each in session.scopes] == [{"known.one": "xy"}, {}]
    assert [each.variables for each in session.scopes] == [{"A": "x"}, {}]
    assert "'known.one' is set to 'xy'" in written.getvalue()
    with pytest.raises(StatementFailed, match="Unknown property"):
        shell.run("SET 'other' = '1';")
    with pytest.raises(StatementFailed, match="never defined"):
        shell.run("UNDEFINE a;")


def test_statements_stop_at_the_first_error_which_shows_its_place() -> None:
    session = GivenSession()
    shell, written = shell_of(session, width=80)
    shell.attempt("SHOW STREAMS; SELECT ? FROM s; SHOW TABLES;")
    assert session.executed == ["SHOW STREAMS;", "SELECT ? FROM s;"]
    assert written.getvalue() == (
        "error: no such query\n"
        "  at: line 1, column 8:  SELECT ? FROM s;\n"
        "                                ^\n"
        "  hint: ask another\n"
    )


def test_a_command_that_failed_is_shown_and_ends_the_script() -> None:
    session = GivenSession({"DROP STREAM a;": [ENTITIES["failed_status"]]})
    shell, written = shell_of(session)
    with pytest.raises(CommandFailed, match="topic is gone"):
        shell.run("DROP STREAM a; SHOW STREAMS;")
    shell.attempt("DROP STREAM a;")
    assert written.getvalue() == "topic is gone\n" * 2
    assert session.executed == ["DROP STREAM a;"] * 2


def test_a_mistake_of_ours_does_not_end_the_shell(caplog: pytest.LogCaptureFixture) -> None:
    session = GivenSession({"SHOW STREAMS;": [{"@type": "streams", "streams": 7}]})
    shell, written = shell_of(session)
    shell.attempt("SHOW STREAMS;")
    assert written.getvalue().startswith("error: TypeError: ")
    assert "unexpected" in caplog.text
    with pytest.raises(ExitShell):
        shell.attempt("exit")


# --- commands ------------------------------------------------------------------------------------


def test_set_cli_changes_how_rows_look() -> None:
    shell, written = shell_of(answering(pull=GivenRows([ID, TOTAL], [["a long text", 3]])))
    shell.run(f"set cli wrap off; set cli column-width 7; {PULL}")
    assert "|a lo...|3      |\n" in written.getvalue()
    for wrong in ("set cli wrap maybe", "set cli column-width -1", "set cli", "set cli color on"):
        with pytest.raises(StatementFailed, match="unknown shell setting"):
            shell.run(wrong)


def test_what_is_shown_is_spooled_too(tmp_path: Path) -> None:
    shell, _ = shell_of(answering(pull=GivenRows([ID, TOTAL], ROWS)))
    file = tmp_path / "spooled.txt"
    shell.run(f"spool '{file}'; {PULL} spool OFF; version")
    assert file.read_text() == f"spooling to {file}\n{PULLED}"
    with pytest.raises(StatementFailed, match="cannot write"):
        shell.run(f"spool {tmp_path}")


def test_scripts_are_run_and_may_run_others(tmp_path: Path) -> None:
    session = GivenSession()
    shell, _ = shell_of(session)
    inner, outer, endless = (tmp_path / name for name in ("inner.sql", "outer.sql", "endless.sql"))
    inner.write_text("SHOW TABLES;")
    outer.write_text(f"SHOW STREAMS; RUN SCRIPT '{inner}'; SHOW TOPICS")
    endless.write_text(f"RUN SCRIPT '{endless}';")
    shell.run(f"run script '{outer}'")
    assert session.executed == ["SHOW STREAMS;", "SHOW TABLES;", "SHOW TOPICS;"]
    with pytest.raises(StatementFailed, match="run each other in a loop"):
        shell.run(f"run script '{endless}'")
    with pytest.raises(StatementFailed, match="cannot read the script"):
        shell.run("run script 'missing.sql'")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("version", "1.2.3"),
        ("server", "nowhere"),
        ("output", "output is TABULAR"),
        ("output JSON;", "output is JSON"),
        ("request-pipelining ON", "request-pipelining is OFF"),
        ("help drop type", "DROP TYPE: Drops a custom type."),
        ("help abs", "ABS: "),
        ("help nonsense_of_all", 'unknown statement or function "nonsense_of_all"'),
    ],
)
def test_commands_need_no_session(command: str, shown: str) -> None:
    shell, written = shell_of(GivenSession(), width=100)
    shell.run(command)
    assert written.getvalue().startswith(shown)


def test_help_names_all_statements_and_commands() -> None:
    shell, written = shell_of(GivenSession())
    shell.run("help")
    assert all(each.name in written.getvalue() for each in HELP)
    for name in ("exit", "spool", "set cli wrap", "output", "server", "request-pipelining"):
        assert name in written.getvalue()


def test_wrong_commands_say_what_is_possible() -> None:
    shell, _ = shell_of(GivenSession())
    with pytest.raises(StatementFailed, match="TABULAR or JSON"):
        shell.run("output XML")
    with pytest.raises(StatementFailed, match="a file or OFF"):
        shell.run("spool")
    with pytest.raises(ServerFailed, match="no response from"):
        shell.run("server http://127.0.0.1:1")
    with pytest.raises(ExitShell):
        shell.run("exit;")


@pytest.mark.parametrize("statement", [PULL, PUSH])
def test_output_to_a_file_has_whole_values_and_no_markup(statement: str) -> None:
    value = "[/var/log] :smile: " + "x" * 500
    session = GivenSession(answers={statement: GivenRows([ID, TOTAL], [["a", value]])})
    session.entities["LIST TOPICS;"] = [
        {"@type": "kafka_topics", "topics": [{"name": value, "replicaInfo": [1]}]}
    ]
    written = StringIO()
    shell = Shell(session, Screen.of(written), run_command)
    shell.run(f"{statement} LIST TOPICS;")
    assert sum(value in line for line in written.getvalue().splitlines()) == 2
