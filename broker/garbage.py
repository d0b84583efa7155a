"""Garbage collection between rounds: threads that process records decide when it runs.

The collector would examine every object repeatedly while millions of records are freed by reference
counting anyway, which costs up to half of the time. While threads process records (runners of
streams, tasks of connectors), automatic collection is disabled and existing objects are frozen;
each thread collects between its rounds when enough was allocated, never during a round. A process
has one collector, so all of them share this.
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
    """Called by a thread before its first round: disables automatic collection.

    The returned function must be called after its last round; the last thread enables automatic
    collection again.
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
    """Collect if enough was allocated since the last collection; one thread at a time."""
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
