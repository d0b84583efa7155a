"""The message for users when a query on Spark fails: the reason without stack traces."""

import re

# The end of a Python traceback: the type of the error, and its message.
RAISED = re.compile(r"^(?:[a-z_]\w*\.)*(?P<type>[A-Z]\w*): (?P<what>.+)$", re.MULTILINE)
TRACE = re.compile(r"^\s+at [\w.$/<>]+\(.*\)$|^\s*\.\.\. \d+ more$", re.MULTILINE)
ABOUT_QUERY = "=== Streaming Query ==="  # Spark continues with offsets and the whole plan
LINES_MAX = 20


def shown_failure(message: str) -> str:
    """The error that a Python worker raised, if there is one; otherwise the message without traces.

    >>> shown_failure('Job aborted\\n  File "x.py", line 1\\nsql.errors.SqlError: no such topic')
    'no such topic'
    """
    if "Traceback (most recent call last)" in message or 'File "' in message:
        found = [each for each in RAISED.finditer(message) if "Exception" not in each["type"]]
        if found:
            return _with_hint(message, found[-1])
    told = message.partition(ABOUT_QUERY)[0].strip() or message
    lines = [each for each in TRACE.sub("", told).splitlines() if each.strip()]
    return "\n".join(lines[:LINES_MAX]) or message


def _with_hint(message: str, found: "re.Match[str]") -> str:
    """The message and the lines after it that belong to it, such as "hint:"."""
    lines = [found["what"]]
    for line in message[found.end() :].splitlines()[1:]:
        if not line.startswith("  ") or TRACE.match(line):
            break
        lines.append(line)
    named = f"{found['type']}: " if found["type"] in ("KeyError", "AssertionError") else ""
    return named + "\n".join(lines)
