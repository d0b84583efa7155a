"""Freed memory: kept for the next records, not given back to the system after each batch.

The C library gives memory back as soon as some of it is free at the end, and asks for it again with
the next batch; the system then has to clear every page again. Millions of records turn that into up
to half of the time. Where the library is another one than glibc, nothing is changed.
"""

import ctypes
import sys

# Numbers of glibc's mallopt.
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3

KEPT_BYTES = 64 * 1024 * 1024  # free at the end before it is given back
LARGE_BYTES = 16 * 1024 * 1024  # larger pieces are mapped, and given back at once


def keep_freed_memory() -> bool:
    """Let the process keep some of the memory that it frees; whether the C library can."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(MMAP_THRESHOLD, LARGE_BYTES))
