"""Garbage collection between rounds: runners decide when it runs, never in the middle of work.

The collector looks at every object again and again while millions of records pass that are freed by
counting anyway; left alone it costs up to half of the time. While runners live, automatic
collection is off and what existed before is frozen; each runner collects between its rounds when
enough was allocated. The collector is one for the process, so runners share this.
"""

import gc
import threading

YOUNG_OBJECTS_MAX = 50_000
YOUNG_COLLECTIONS_PER_OLD = 20
OLD_COLLECTIONS_PER_FULL = 10

_lock = threading.Lock()
_runners = 0
_was_enabled = False
_young = 0
_old = 0


def runner_started() -> None:
    """Automatic collection is off from the first runner on."""
    global _runners, _was_enabled
    with _lock:
        _runners += 1
        if _runners == 1:
            _was_enabled = gc.isenabled()
            gc.freeze()
            gc.disable()


def runner_ended() -> None:
    """With the last runner, everything is as it was."""
    global _runners
    with _lock:
        _runners -= 1
        if _runners == 0:
            gc.unfreeze()
            if _was_enabled:
                gc.enable()


def collect_when_due() -> None:
    """Collect if enough was allocated since the last time; one runner at a time."""
    global _young, _old
    if gc.get_count()[0] < YOUNG_OBJECTS_MAX or not _lock.acquire(blocking=False):
        return
    try:
        _young += 1
        if _young < YOUNG_COLLECTIONS_PER_OLD:
            gc.collect(0)
            return
        _young = 0
        _old += 1
        if _old < OLD_COLLECTIONS_PER_FULL:
            gc.collect(1)
            return
        _old = 0
        gc.collect(2)
    finally:
        _lock.release()
