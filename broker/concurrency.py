"""Concurrency: the source of threads and locks. No other module creates them directly.

In production these are Python's own. In a simulation (`millstream.simulation`) the same names are
threads that share one thread of the machine, on virtual time, and locks, conditions and events for
them.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

__all__ = [
    "Condition",
    "Event",
    "Lock",
    "RLock",
    "SimpleQueue",
    "Thread",
    "ThreadPoolExecutor",
    "current_thread",
    "get_ident",
    "local",
    "pause",
]

PAUSE_SECONDS = 0.0001

Condition = threading.Condition
Event = threading.Event
Lock = threading.Lock
RLock = threading.RLock
Thread = threading.Thread
current_thread = threading.current_thread
get_ident = threading.get_ident
local = threading.local


def pause() -> None:
    """Give other threads the chance to acquire the lock that was just released."""
    time.sleep(PAUSE_SECONDS)
