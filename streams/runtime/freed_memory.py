"""Keeps freed memory for the next records, instead of returning it to the system after each batch.

glibc returns memory as soon as some is free at the end of the heap, and requests it again for the
next batch; the system then clears every page again. With millions of records this takes up to half
of the time. With other C libraries nothing is changed.
"""

import ctypes
import sys

# Numbers of glibc's mallopt.
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3

KEPT_BYTES = 64 * 1024 * 1024  # free memory at the end of the heap that is not returned
LARGE_BYTES = 16 * 1024 * 1024  # larger allocations are mapped, and returned when they are freed


def keep_freed_memory() -> bool:
    """Keep some freed memory in the process; returns whether the C library supports it."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(MMAP_THRESHOLD, LARGE_BYTES))
