r"""Java's properties files, which configure Kafka's programs.

    # a comment, as is a line that begins with !
    name=value
    name: value with spaces
    name = a long value, \
        which continues here

A backslash escapes the next character; `\t`, `\n` and `\u00e4` are characters.
"""

import re

from broker.errors import ConfigError

PROPERTY = re.compile(r"((?:[^=:\s\\]|\\.)+)(?:\s*[=:]\s*|\s+)(.*)", re.DOTALL)
ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def read_properties(text: str, *, name: str) -> dict[str, str]:
    """Read Java properties: `key=value`, `key: value`, `#` and `!` comments, `\\` escapes."""
    found: dict[str, str] = {}
    pending = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = pending + raw.strip()
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = ""
        if not line:
            continue
        parts = PROPERTY.fullmatch(line)
        if parts is None:
            raise ConfigError(f'"{line}" is not a setting', at=f"{name} line {number}")
        found[_unescaped(parts[1])] = _unescaped(parts[2])
    return found


def _unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: _escaped_sign(found[1]), text) if "\\" in text else text


def _escaped_sign(sign: str) -> str:
    if len(sign) > 1:
        return chr(int(sign[1:], 16))
    return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(sign, sign)
