"""Stack traces: the text of an error that dead letters, statuses of connectors and logs contain.

A simulation (`millstream.simulation`) replaces the function, because the text must not depend on
the directory in which Millstream is installed. So callers access it through the module each time.
"""

import traceback

__all__ = ["format_error"]


def format_error(error: BaseException) -> str:
    """The error as Python prints it, with its causes."""
    return "".join(traceback.format_exception(error))
