"""What commands print: data is never markup, and nothing is cut where no terminal shows it."""

import io
import sys

import pytest
from rich.console import Console

from millstream.output import Output, table

NAMES = [
    "orders-[a-z]+[/var/log]",
    "[red]x[/red]",
    "[link=https://example.org]x[/link]",
    ":smile: [/]",
    r"back\[slash]",
    "long " + "x" * 500,
]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_values_are_printed_as_they_are(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    output = Output(as_json=False)
    output.rows([{name: name}, {name: [name, None]}], title=name)
    output.record({name: name}, title=name)
    output.rows([], empty=name)
    output.line({}, name)
    output.done(name)
    lines = [line for line in capsys.readouterr().out.splitlines() if name[:3] in line]
    assert len(lines) >= 7
    assert all(name.replace("_", " ") in line for line in lines)
    assert not any("\x1b" in line or "…" in line for line in lines)


def test_a_spinner_shows_its_text_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output = Output(as_json=False)
    output.progress_console = Console(file=shown, force_terminal=True, width=80)  # type: ignore[assignment]  # a terminal
    with output.progress("deleting [/var/log]"):
        pass
    assert "deleting [/var/log]" in shown.getvalue()


def test_a_terminal_folds_what_is_too_wide_for_it() -> None:
    shown = io.StringIO()
    Console(file=shown, width=40).print(table([{"topic": "x" * 100}], "t"))
    assert shown.getvalue().count("x") == 100
