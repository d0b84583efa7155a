"""Help: the shell's own commands, statements and functions."""

from collections.abc import Iterator

from sql.errors import SqlError
from sql.functions.builtin import builtin_functions
from sql.syntax.statement_help import StatementHelp, help_about

COMMANDS = (
    ("help [statement | function]", "List commands and statements, or show help for one of them."),
    ("exit", "Leave the shell, like Ctrl-D."),
    ("clear", "Clear the screen."),
    ("history", "Show earlier statements."),
    ("version", "Show the version of the engine."),
    ("output [TABULAR | JSON]", "Show or set the output format."),
    ("server [URL]", "Show the server, or connect to another one."),
    ("spool file | OFF", "Also write all output to a file."),
    ("run script 'file'", "Run the statements of a file."),
    ("set cli wrap on | off", "Wrap long values over several lines, or cut them off."),
    ("set cli column-width n", "Set the width of columns; 0 fits them to the screen."),
    ("request-pipelining [ON | OFF]", "Accepted for ksqlDB's scripts; has no effect."),
)


def help_lines(words: str) -> Iterator[str]:
    """Help about everything, or about some words."""
    if not words.strip():
        yield from _overview()
        return
    function = list(_function_lines(words.strip()))
    found = help_about(words)
    exact = [each for each in found if words.strip().upper() in each.name.split(", ")]
    if function and not exact:
        yield from function
        return
    if not found:
        yield f'unknown statement or function "{words.strip()}"; "help" lists the statements'
    for index, each in enumerate(found):
        yield from ["", *_statement_lines(each)] if index else _statement_lines(each)


def _overview() -> Iterator[str]:
    yield "Shell commands:"
    width = max(len(form) for form, _ in COMMANDS)
    yield from (f"  {form:<{width}}  {about}" for form, about in COMMANDS)
    yield ""
    yield "Statements end with ; and may take several lines:"
    statements = help_about("")
    width = max(len(each.name) for each in statements)
    yield from (f"  {each.name:<{width}}  {each.about}" for each in statements)
    yield ""
    yield "Ctrl-C stops a running query. More: help SELECT, help SUBSTRING, SHOW FUNCTIONS;"


def _statement_lines(statement: StatementHelp) -> Iterator[str]:
    yield f"{statement.name}: {statement.about}"
    for title, text in (("form", statement.form), ("example", statement.example)):
        yield f"  {title}:"
        yield from (f"    {line}" for line in text.splitlines())


def _function_lines(name: str) -> Iterator[str]:
    try:
        function = builtin_functions().get(name.rstrip("();"))
    except SqlError:
        return
    yield f"{function.name}: {function.description}"
    yield from (f"  {each.signature}" for each in function.overloads)
