"""File descriptors: how many the process may open, and how they are divided.

0 ................ limit/2 ................................ limit - reserve ...... limit
open files of logs            connections                      short-lived: a file is read
                                                               or fsynced
"""

import errno
import resource

LOG_FILES_MAX = 4096
LOG_FILES_MIN = 16
RESERVE_MAX = 64
RESERVED_SHARE = 8
UNLIMITED = 1 << 30
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


def raise_limit() -> int:
    """Raise the soft limit to the hard one, as a JVM does; returns the new limit.

    For commands that run a server, not for a broker embedded in another program.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # some systems have a lower limit than they report
            return limit()
    return limit()


def limit() -> int:
    """The number of descriptors that the process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def reserve() -> int:
    """The number of descriptors that must stay free."""
    return min(RESERVE_MAX, limit() // RESERVED_SHARE)


def log_files_max(descriptors_max: int | None = None) -> int:
    """The maximum number of open log files: half of all descriptors."""
    count = limit() if descriptors_max is None else descriptors_max
    return max(min(LOG_FILES_MAX, count // 2), LOG_FILES_MIN)


def connections_max() -> int:
    """The maximum number of connections that leaves enough for the logs."""
    return max(limit() - log_files_max() - reserve(), 1)
