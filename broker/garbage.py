"""Garbage collection between rounds: who passes records on decides when it runs.

The collector looks at every object again and again while millions of records pass that are freed by
counting anyway; left alone it costs up to half of the time. While threads pass records on (runners
of streams, tasks of connectors), automatic collection is off and what existed before is frozen;
each of them collects between its rounds when enough was allocated, never in the middle of work.
The collector is one for the process, so all of them share this.
"""

import gc
from collections.abc import Callable

from broker import concurrency

YOUNG_OBJECTS_MAX = 50_000
YOUNG_COLLECTIONS_PER_OLD = 20
OLD_COLLECTIONS_PER_FULL = 10

_lock = concurrency.Lock()
_threads = 0
_was_enabled = False
_young = 0
_old = 0


def rounds_began() -> Callable[[], None]:
    """Called by a thread before its first round: automatic collection is off from then on.

    What is returned must be called after its last round: with the last thread's, everything is as
    it was.
    """
    global _threads, _was_enabled
    with _lock:
        _threads += 1
        if _threads == 1:
            _was_enabled = gc.isenabled()
            gc.freeze()
            gc.disable()
    return _rounds_ended


def _rounds_ended() -> None:
    global _threads
    with _lock:
        _threads -= 1
        if _threads == 0:
            gc.unfreeze()
            if _was_enabled:
                gc.enable()


def collect_when_due() -> None:
    """Collect if enough was allocated since the last time; one thread at a time."""
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
