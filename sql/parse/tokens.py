"""Tokens: SQL text split into words, numbers, quoted strings and symbols.

The lists of Tokens are parallel, with one item per token, and end with an `end` token:

    SELECT a FROM `b`;
    kinds   reserved  name  reserved  quoted  sign  end
    words   SELECT    A     FROM              ;     <EOF>
    raw     SELECT    a     FROM      `b`     ;

Words that are not reserved ("EMIT", "KEY") are names; the parser compares them where it expects
them. `open` is an unterminated quote or comment, and `wrong` an unexpected character.
"""

import re
from dataclasses import dataclass

from sql.errors import SyntaxFailed
from sql.syntax.keywords import RESERVED

TEXT_MAX = 10_000_000
TOKENS_MAX = 200_000
END = "<EOF>"
WITH_WORDS = frozenset({"word", "name", "sign"})

# Letters are ASCII letters, written out: IGNORECASE would match a few others. Quoted strings use
# possessive quantifiers (*+): the memory for backtracking would exceed the text itself.
TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\r\n]*|/\*.*?\*/)
    | (?P<word>[A-Za-z_][A-Za-z0-9_@]*)
    | (?P<exponent>(?:[0-9]+\.[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+
        | [0-9]+[eE][+-]?[0-9]+(?![A-Za-z0-9_@]))
    | (?P<name>[0-9]+[A-Za-z_@][A-Za-z0-9_@]*)
    | (?P<fraction>[0-9]+\.[0-9]*|\.[0-9]+)
    | (?P<whole>[0-9]+)
    | (?P<text>'[^']*+(?:''[^']*+)*+')
    | (?P<quoted>`[^`]*+(?:``[^`]*+)*+`|"[^"]*+(?:""[^"]*+)*+")
    | (?P<variable>\$\{[A-Za-z_][A-Za-z0-9_@]*\})
    | (?P<open>'|"|`|/\*)
    | (?P<sign><>|<=|>=|!=|\|\||:=|->|=>|[-+*/%=<>(),.;\[\]])
    | (?P<wrong>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class Tokens:
    """The tokens of a text; lines and columns count from 1."""

    text: str
    kinds: list[str]
    words: list[str]
    raw: list[str]
    starts: list[int]
    lines: list[int]
    columns: list[int]


def tokens_of(text: str, *, line: int = 1, column: int = 1) -> Tokens:
    """The tokens of a text, which starts at a line and column of a larger one."""
    if len(text) > TEXT_MAX:
        raise SyntaxFailed(f"the text has {len(text)} characters; at most {TEXT_MAX} are allowed")
    result = Tokens(text, [], [], [], [], [], [])
    kinds, words, raw = result.kinds, result.words, result.raw
    first_line, line_start, last_end = line, 1 - column, 0
    for match in TOKEN.finditer(text):
        kind, token, start = match.lastgroup or "", match.group(), match.start()
        if kind != "space":
            word = token.upper() if kind in WITH_WORDS else ""
            if kind == "word":
                kind = "reserved" if word in RESERVED else "name"
            kinds.append(kind)
            words.append(word)
            raw.append(token)
            result.starts.append(start)
            result.lines.append(line)
            result.columns.append(start - line_start + 1)
            last_end = match.end()
            if kind == "open" or len(kinds) > TOKENS_MAX:
                break
        if "\n" in token:
            line += token.count("\n")
            line_start = start + token.rfind("\n") + 1
    if len(kinds) > TOKENS_MAX:
        why = f"the text has more than {TOKENS_MAX} words and symbols"
        raise SyntaxFailed(why, hint="send it in parts")
    _add_end(result, last_end, line=first_line, column=column)
    return result


def _add_end(found: Tokens, end: int, *, line: int, column: int) -> None:
    """Add the end token directly after the last token."""
    before = found.text[:end]
    newline = before.rfind("\n")
    found.kinds.append("end")
    found.words.append(END)
    found.raw.append(END)
    found.starts.append(end)
    found.lines.append(line + before.count("\n"))
    found.columns.append(end - newline if newline >= 0 else end + column)


def unquoted(token: str) -> str:
    """A string without its quotes; doubled quotes inside become single ones."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)
