"""Syntax errors, with ksqlDB's messages and our own hints."""

from sql.errors import SyntaxFailed
from sql.parse.tokens import END, Tokens
from sql.syntax.keywords import RESERVED, closest_statement
from sql.syntax.node import Position

SHOWN_MAX = 3
NEAR_MAX = 60  # characters of a token that are shown
CLASSES = {
    "text": "STRING",
    "whole": "INTEGER_VALUE",
    "fraction": "DECIMAL_VALUE",
    "exponent": "FLOATING_POINT_VALUE",
    "name": "IDENTIFIER",
    "end": END,
}
BRACKETS = frozenset({"(", ")", "[", "]", "<", ">", "="})
TYPOGRAPHIC = frozenset("\u2018\u2019\u201a\u201c\u201d\u201e\u00b4")
END_HINT = "end each statement with a semicolon"
# Unsupported syntax of other dialects, by the word at the position or before it.
UNSUPPORTED = {
    "ORDER": "ORDER BY is not supported: a stream has no end after which its rows could be sorted",
    "UNION": "UNION is not supported: INSERT INTO one stream from several queries instead",
    "OFFSET": "OFFSET is not supported, only LIMIT",
    "OVER": "OVER is not supported: use WINDOW and GROUP BY",
    "DISTINCT": "DISTINCT is not supported: GROUP BY the columns, or use COUNT_DISTINCT",
}


def refused(message: str, place: Position, *, hint: str = "") -> SyntaxFailed:
    """An error for syntax that is correct but not allowed."""
    # ksqlDB counts the columns of these errors from 2; `column` is the right one.
    return SyntaxFailed(
        f"Failed to prepare statement: line {place.line}:{place.column + 1}: {message}",
        line=place.line,
        column=place.column,
        hint=hint,
    )


def unknown_statement(tokens: Tokens, index: int) -> SyntaxFailed:
    """An error for a token that begins no statement."""
    near = _shown(tokens, index)
    if tokens.kinds[index] in ("open", "end"):
        return unexpected(tokens, index, ())
    guess = closest_statement(near)
    meant = f"\nDid you mean '{guess}'?" if guess else ""
    return _failed(tokens, index, f"Unknown statement '{near}'{meant}", "")


def unfinished(tokens: Tokens, index: int) -> SyntaxFailed:
    """An error for a statement without an end, where many tokens are possible."""
    if tokens.kinds[index] in ("open", "end"):
        return unexpected(tokens, index, ())
    if tokens.words[index] in ("AND", "OR", "NOT"):
        return _failed(tokens, index, "", "put the condition in parentheses")
    hint = _hint(tokens, index) or f'"{_shown(tokens, index)}" cannot follow here; {END_HINT}'
    return _failed(tokens, index, "", hint)


def unexpected(tokens: Tokens, index: int, expected: tuple[str, ...]) -> SyntaxFailed:
    """An error for an unexpected token; `expected` is empty if many tokens are possible."""
    near = _shown(tokens, index)
    hint = _hint(tokens, index)
    if tokens.kinds[index] == "open":
        return _failed(tokens, index, _near(tokens, index), _open_hint(near))
    if tokens.kinds[index] == "end":
        return _failed(tokens, index, _near(tokens, index), hint or END_HINT)
    if not hint and tokens.kinds[index] == "reserved" and ("name" in expected or not expected):
        hint = f"put a name that is a keyword in backticks: `{near}`"
    if "name" in expected:
        return _failed(tokens, index, _reserved(tokens, index) or _near(tokens, index), hint)
    if len(expected) == 1 and expected[0] in BRACKETS:
        return _failed(tokens, index, f"missing '{expected[0]}' at '{near}'", hint)
    if not 0 < len(expected) <= SHOWN_MAX:
        return _failed(tokens, index, _near(tokens, index), hint)
    shown = [CLASSES.get(each, f"'{each}'") for each in expected]
    listed = shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"
    return _failed(tokens, index, f"Expecting {listed}", hint)


def _failed(tokens: Tokens, index: int, message: str, hint: str) -> SyntaxFailed:
    line, column = tokens.lines[index], tokens.columns[index]
    text = f"line {line}:{column}: Syntax Error\n{message}"
    return SyntaxFailed(text, line=line, column=column, hint=hint)


def _shown(tokens: Tokens, index: int) -> str:
    text = tokens.raw[index]
    return text if len(text) <= NEAR_MAX else f"{text[:NEAR_MAX]}..."


def _near(tokens: Tokens, index: int) -> str:
    place = f"line {tokens.lines[index]}:{tokens.columns[index]}"
    return f"Syntax error at or near '{_shown(tokens, index)}' at {place}"


def _reserved(tokens: Tokens, index: int) -> str:
    """A message for a keyword in place of a name, or an empty string."""
    near = _shown(tokens, index)
    if near.upper() not in RESERVED or tokens.kinds[index + 1] not in ("name", "quoted"):
        return ""
    return (
        f'"{near}" is a reserved keyword and it can\'t be used as an identifier. '
        f"You can use it as an identifier by escaping it as '{near}' "
    )


def _hint(tokens: Tokens, index: int) -> str:
    before = tokens.words[index - 1] if index else ""
    result = UNSUPPORTED.get(tokens.words[index]) or UNSUPPORTED.get(before)
    if result:
        return result
    if tokens.words[index] == "(" and tokens.words[index + 1] == "SELECT":
        return "subqueries are not supported: CREATE STREAM ... AS SELECT and read from that stream"
    return _wrong_hint(tokens.raw[index]) if tokens.kinds[index] == "wrong" else ""


def _wrong_hint(sign: str) -> str:
    if sign in TYPOGRAPHIC:
        return f"use ' for strings and ` for names instead of {sign}"
    if sign.isalnum():
        return f'put a name that contains "{sign}" in backticks'
    return f'"{sign}" has no meaning outside quotes'


def _open_hint(quote: str) -> str:
    return "the comment has no */" if quote == "/*" else f"the quote {quote} is never closed"
