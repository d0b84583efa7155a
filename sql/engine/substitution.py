"""Substitution: a text split into its statements, and variables in each replaced by their values.

`${name}` stands for a variable's value, in quotes or outside; `$${name}` is left as `${name}`; a
variable that is not defined stays as it is. Outside quotes a value must be one name, number or
quoted text, so that it cannot bring a statement of its own.
"""

import re
from collections.abc import Iterator, Mapping

from sql.errors import StatementFailed

# What the text is made of; a piece never ends inside quotes or a comment.
PIECE = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<text> '(?:[^']|'')*(?:'|\Z) )
    | (?P<quoted> `(?:[^`]|``)*(?:`|\Z) | "(?:[^"]|"")*(?:"|\Z) )
    | (?P<end> ; )
    | (?P<other> [^'`";/-]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
VARIABLE = re.compile(r"\$?\$\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")
ONE_PIECE = re.compile(
    r"""[A-Za-z0-9_@.]+ | `(?:[^`]|``)*` | "(?:[^"]|"")*" | '(?:[^']|'')*' | [+-]?[0-9.eE]+""",
    re.VERBOSE,
)


def split_statements(text: str) -> Iterator[str]:
    """The statements of a text, each with its semicolon; what is left at the end without one.

    >>> list(split_statements("SHOW 'a;b'; -- no; end"))
    ["SHOW 'a;b';"]
    """
    kept: list[str] = []
    said = False
    for piece in PIECE.finditer(text):
        kept.append(piece.group())
        if piece.lastgroup == "end":
            yield "".join(kept).strip()
            kept, said = [], False
        elif piece.lastgroup != "comment" and piece.group().strip():
            said = True
    if said:
        yield "".join(kept).strip()


def substituted(statement: str, variables: Mapping[str, str]) -> str:
    """A statement with the values of variables, whose names are in upper case."""
    if "${" not in statement:
        return statement
    return "".join(
        piece.group()
        if piece.lastgroup == "comment"
        else _replaced(piece.group(), piece.lastgroup or "", variables)
        for piece in PIECE.finditer(statement)
    )


def _replaced(text: str, kind: str, variables: Mapping[str, str]) -> str:
    def value_of(found: re.Match[str]) -> str:
        if found.group().startswith("$$"):
            return found.group()[1:]
        value = variables.get(found[1].upper())
        if value is None:
            return found.group()
        if kind == "text":
            return value.replace("'", "''")
        if kind == "quoted":
            return value.replace(text[0], text[0] * 2)
        if not ONE_PIECE.fullmatch(value):
            raise StatementFailed(
                f"Failed to substitute some variables.\nStatement: {text.strip()}\n"
                f"Reason: Illegal argument at variable '{found[1]}': {value}",
                hint="outside quotes a variable is one name, number or quoted text",
            )
        return value

    return VARIABLE.sub(value_of, text)
