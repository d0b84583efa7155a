"""parse: text to syntax, through the grammar in grammar.lark."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from sql.errors import SyntaxFailed
from sql.parse.keywords import RESERVED, closest_statement
from sql.parse.statement_builder import SyntaxBuilder
from sql.syntax.expressions import Expression
from sql.syntax.statements import (
    AssertSource,
    AssertTombstone,
    AssertValues,
    RunScript,
    Statement,
)
from sql.syntax.type_names import TypeSyntax

TEXT_MAX = 10_000_000
DEPTH_MAX = 500
SHOWN_EXPECTED_MAX = 12
# Statements that only scripts and tests know; a server does not.
SCRIPT_ONLY = (RunScript, AssertValues, AssertTombstone, AssertSource)


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement and the text it was read from, without its semicolon."""

    statement: Statement
    text: str


def parse(text: str, *, testing: bool = False) -> list[ParsedStatement]:
    """All statements of a text; each ends with a semicolon.

    >>> [type(each.statement).__name__ for each in parse("SHOW STREAMS; PRINT orders;")]
    ['Show', 'Print']
    """
    found = cast("list[tuple[Statement, int, int]]", _parsed(text, "script"))
    statements = [ParsedStatement(each, text[start:end]) for each, start, end in found]
    if not testing:
        for statement, _, _ in found:
            if isinstance(statement, SCRIPT_ONLY):
                raise _unknown(text, statement)
    return statements


def parse_statement(text: str, *, testing: bool = False) -> Statement:
    """The one statement of a text, with or without a semicolon."""
    found = parse(text if text.rstrip().endswith(";") else f"{text};", testing=testing)
    if len(found) != 1:
        raise SyntaxFailed(f"one statement is expected, and there are {len(found)}")
    return found[0].statement


def parse_expression(text: str) -> Expression:
    """The expression of a text.

    >>> parse_expression("a + 1").operator
    '+'
    """
    return cast(Expression, _parsed(text, "expression"))


def parse_type(text: str) -> TypeSyntax:
    """The type of a text."""
    return cast(TypeSyntax, _parsed(text, "type"))


def _parsed(text: str, start: str) -> object:
    _check_bounds(text)
    try:
        # Not while parsing: only finished trees know where their parts stand.
        return cast(object, SyntaxBuilder().transform(_grammar().parse(text, start=start)))
    except UnexpectedInput as error:
        raise _failure(text, error) from None
    except VisitError as error:
        raise error.orig_exc from None


@cache
def _grammar() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text()
    return Lark(
        grammar.replace("(RESERVED)", f"({'|'.join(sorted(RESERVED))})"),
        parser="lalr",
        start=["script", "expression", "type"],
        propagate_positions=True,
        maybe_placeholders=True,
    )


def _check_bounds(text: str) -> None:
    if len(text) > TEXT_MAX:
        raise SyntaxFailed(f"the text has {len(text)} signs, and at most {TEXT_MAX} are read")
    depth = 0
    for sign in _outside_quotes(text):
        if sign in "([<":
            depth += 1
            if depth > DEPTH_MAX:
                raise SyntaxFailed(f"more than {DEPTH_MAX} brackets are open at once")
        elif sign in ")]>" and depth:
            depth -= 1


def _outside_quotes(text: str) -> Iterator[str]:
    quote = ""
    for sign in text:
        if quote:
            if sign == quote:
                quote = ""
        elif sign in "'\"`":
            quote = sign
        else:
            yield sign


def _failure(text: str, error: UnexpectedInput) -> SyntaxFailed:
    line, column = max(error.line, 1), max(error.column, 1)
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        near = str(error.token)
        expected = sorted(error.accepts or error.expected or ())
    elif isinstance(error, UnexpectedCharacters):
        place = error.pos_in_stream or 0
        near = _word_at(text, place)
        expected = sorted(error.allowed or ())
    else:
        lines = text.rstrip().split("\n")
        line, column, near = len(lines), len(lines[-1]) + 1, "<EOF>"
        expected = sorted(getattr(error, "accepts", ()) or getattr(error, "expected", ()) or ())
    message = [f"line {line}:{column}: Syntax Error"]
    first = _first_word(text, line, column)
    if first is not None:
        message.append(f"Unknown statement '{first}'")
        guess = closest_statement(first)
        if guess:
            message.append(f"Did you mean '{guess}'?")
    message.append(f"Syntax error at or near '{near}' at line {line}:{column}")
    if near.upper() in RESERVED:
        message.append(
            f'"{near}" is a reserved keyword and it can\'t be used as an identifier. '
            f'You can use it as an identifier by escaping it as "{near}"'
        )
    named = [name for each in expected if (name := _shown(each))]
    if named and len(named) <= SHOWN_EXPECTED_MAX:
        message.append(f"Expecting {{{', '.join(named)}}}")
    hint = "end each statement with a semicolon" if near == "<EOF>" else ""
    return SyntaxFailed("\n".join(message), line=line, column=column, hint=hint)


def _word_at(text: str, place: int) -> str:
    found = re.compile(r"\w+|.", re.DOTALL).match(text, place)
    return found[0] if found else "<EOF>"


def _first_word(text: str, line: int, column: int) -> str | None:
    """The word at a place, if a statement begins there."""
    lines = text.split("\n")
    before = "\n".join([*lines[: line - 1], lines[line - 1][: column - 1]])
    if before.strip() and not before.rstrip().endswith(";"):
        return None
    rest = lines[line - 1][column - 1 :].split()
    return rest[0].rstrip(";") if rest else None


def _shown(terminal: str) -> str:
    shown = {
        "TEXT": "STRING",
        "WHOLE": "INTEGER_VALUE",
        "FRACTION": "DECIMAL_VALUE",
        "EXPONENT": "FLOATING_POINT_VALUE",
        "NAME": "IDENTIFIER",
        "RPAR": "')'",
        "LPAR": "'('",
        "COMMA": "','",
        "SEMICOLON": "';'",
        "EQUAL": "'='",
        "DOT": "'.'",
        "$END": "<EOF>",
    }
    if terminal in shown:
        return shown[terminal]
    return "" if terminal.startswith("_") else f"'{terminal}'"


def _unknown(text: str, statement: Statement) -> SyntaxFailed:
    line, column = statement.position.line, statement.position.column
    words = [str(each) for each in text.split("\n")[line - 1][column - 1 :].split()[:2]]
    if words[0].upper() == "ASSERT":
        column += len(words[0]) + 1
        near = words[1]
        return SyntaxFailed(
            f"line {line}:{column}: Syntax Error\n"
            f"Syntax error at or near '{near}' at line {line}:{column}",
            line=line,
            column=column,
            hint="only test scripts have this statement",
        )
    return SyntaxFailed(
        f"line {line}:{column}: Syntax Error\nUnknown statement '{words[0]}'",
        line=line,
        column=column,
        hint="only the shell and test scripts have this statement",
    )
