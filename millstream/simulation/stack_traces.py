"""Stack traces in a simulation: equal on all machines, because records contain them.

The size of a record determines when a segment is full and how long a message takes. So the text
contains neither the folder of the installation nor frames of Python's library, which differ between
machines.
"""

from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("broker", "streams", "sql", "connect", "millstream")
FOLDERS = tuple(f"{ROOT / name}/" for name in PACKAGES)


def format_error(error: BaseException) -> str:
    """Format an error as Python does, but only with our frames and without source lines."""
    shown = TracebackException.from_exception(error, lookup_lines=False)
    _remove_foreign_frames(shown)
    return "".join(shown.format())


def _remove_foreign_frames(shown: TracebackException) -> None:
    """Remove the parts that differ between machines from an error and its causes."""
    shown.stack = StackSummary.from_list(
        [_without_folder(each) for each in shown.stack if _is_ours(each)]
    )
    for each in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if each is not None:
            _remove_foreign_frames(each)


def _is_ours(frame: FrameSummary) -> bool:
    # Frames named <listcomp> and so on exist in some versions of Python only.
    return frame.filename.startswith(FOLDERS) and not frame.name.startswith("<")


def _without_folder(frame: FrameSummary) -> FrameSummary:
    name = Path(frame.filename).relative_to(ROOT).as_posix()
    return FrameSummary(name, frame.lineno, frame.name, lookup_line=False, line="")
