"""Stack traces: the text of an error that dead letters, statuses of connectors and logs contain.

A simulation (`millstream.simulation`) replaces the function, because there the text must not depend
on where Millstream is installed. So callers take it from the module each time.
"""

import traceback

__all__ = ["format_error"]


def format_error(error: BaseException) -> str:
    """The error as Python prints it, with its causes."""
    return "".join(traceback.format_exception(error))
