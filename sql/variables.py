"""Scripts: splits them into statements, and replaces variables with their values.

`DEFINE name = 'value'` defines a variable, and `${name}` is replaced with its value, in any case:

    in quotes            'orders_${region}'      any text; quotes in it are doubled
    in place of a name   DROP STREAM ${name}     one name: orders, `orders` or "orders"
    in place of a value  VALUES (${amount})      a number, true, false or a 'text' in quotes

A value with quotes is defined with three of them: DEFINE format = '''JSON'''. `$${name}` becomes
`${name}`. In quotes an unknown variable is unchanged; elsewhere it is an error. Values are
restricted, so that they cannot inject a statement, a clause or a comment.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sql.errors import SyntaxFailed
from sql.parse.text import variable_uses
from sql.parse.tokens import TEXT_MAX, TOKEN, Tokens, tokens_of, unquoted
from sql.syntax.node import Position

IN_QUOTES = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_@]*)\}")
NAME = re.compile(r"""(?P<quote>[`"]?)[A-Za-z_][A-Za-z0-9_@]*(?P=quote)""")
# The limits of a script; statements have their own limits.
SCRIPT_TOKENS_MAX = 2_000_000
STATEMENTS_MAX = 100_000
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ScriptPart:
    """A statement with its semicolon, or the rest of the script without one."""

    text: str
    is_complete: bool
    position: Position


def split_statements(text: str) -> list[ScriptPart]:
    """The statements of a script, whether they are valid or not.

    >>> [(each.text, each.is_complete) for each in split_statements("SHOW STREAMS; SELECT ';'")]
    [('SHOW STREAMS;', True), ("SELECT ';'", False)]
    """
    if len(text) > TEXT_MAX:
        raise SyntaxFailed(f"the text has {len(text)} characters; at most {TEXT_MAX} are allowed")
    parts: list[ScriptPart] = []
    start, line, line_start = -1, 1, 0
    position, said = Position(1, 1), False
    for number, match in enumerate(TOKEN.finditer(text)):
        if number >= SCRIPT_TOKENS_MAX or len(parts) >= STATEMENTS_MAX:
            raise SyntaxFailed(
                f"the text has more than {STATEMENTS_MAX} statements or {SCRIPT_TOKENS_MAX} words "
                "and symbols",
                hint="send it in parts",
            )
        kind, token = match.lastgroup, match.group()
        if start < 0 and not token.isspace():
            start = match.start()
            position = Position(line, start - line_start + 1)
        if token == ";":
            parts.append(ScriptPart(text[start : match.end()], True, position))
            start, said = -1, False
        elif kind != "space":
            said = True
        if kind == "open":
            break
        if "\n" in token:
            line += token.count("\n")
            line_start = match.start() + token.rfind("\n") + 1
    if said:
        parts.append(ScriptPart(text[start:].rstrip(), False, position))
    return parts


def substitute(text: str, variables: Mapping[str, str], *, start: Position | None = None) -> str:
    """A statement with the values of its variables, whose names are in upper case.

    >>> substitute("PRINT '${topic}' LIMIT 3;", {"TOPIC": "orders"})
    "PRINT 'orders' LIMIT 3;"
    """
    if "${" not in text:
        return text
    place = start or Position(1, 1)
    tokens = tokens_of(text, line=place.line, column=place.column)
    values = _values(tokens, variables)
    pieces: list[str] = []
    end = size = 0
    for index, kind in enumerate(tokens.kinds):
        if kind != "text" and index not in values:
            continue
        token, begin = tokens.raw[index], tokens.starts[index]
        value = values[index] if index in values else _in_quotes(token, variables)
        # Two consecutive minuses would start a comment.
        apart = " " if value[:1] == "-" and text[begin - 1 : begin] == "-" else ""
        pieces += [text[end:begin], apart, value]
        end = begin + len(token)
        size += len(value)
        if size > TEXT_MAX:
            raise SyntaxFailed(f"with its variables the text has more than {TEXT_MAX} characters")
    return "".join([*pieces, text[end:]])


def _in_quotes(token: str, variables: Mapping[str, str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match["escaped"]:
            return match["escaped"]
        value = variables.get(match["name"].upper())
        return match[0] if value is None else value.replace("'", "''")

    return IN_QUOTES.sub(replaced, token)


def _values(tokens: Tokens, variables: Mapping[str, str]) -> dict[int, str]:
    """The replacements of variables outside quotes, by their tokens."""
    if "variable" not in tokens.kinds:
        return {}
    result: dict[int, str] = {}
    for use in variable_uses(tokens):
        name = tokens.raw[use.index][2:-1]
        value = variables.get(name.upper())
        if value is None:
            raise _illegal(tokens, use.index, f" Got: '${{{name}}}'", f'"{name}" is not defined')
        result[use.index] = (
            _as_name(tokens, use.index, value)
            if use.is_name
            else _as_literal(tokens, use.index, value)
        )
    return result


def _as_name(tokens: Tokens, index: int, value: str) -> str:
    if NAME.fullmatch(value):
        return value
    why = (
        " Identifier names cannot start with '@' and may only contain alphanumeric values and '_'."
        f" Got: '{value}'"
    )
    raise _illegal(tokens, index, why, "a variable here must be a single name")


def _as_literal(tokens: Tokens, index: int, value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return "'" + unquoted(value).replace("'", "''") + "'"
    if value.lower() in ("true", "false") or NUMBER.fullmatch(value):
        return value
    hint = "a variable here must be a number, true, false or a quoted string: DEFINE v = '''text'''"
    raise _illegal(tokens, index, f" Got: '{value}'", hint)


def _illegal(tokens: Tokens, index: int, why: str, hint: str) -> SyntaxFailed:
    line, column = tokens.lines[index], tokens.columns[index]
    message = f"Illegal argument at Line: {line}, Col: {column}.{why}"
    return SyntaxFailed(message, line=line, column=column, hint=hint)
