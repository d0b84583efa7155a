"""The line of the user's code that builds a topology, for errors."""

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent) + "/"


def user_line() -> str:
    """The file and line of the nearest caller outside this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to see callers without building text
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
