"""The process that listens on a port of this machine, from Linux's /proc.

/proc/net/tcp   a line per socket: number, local address as HEX:PORT, remote address, state (0A: it
                listens), ..., and in column 9 the socket's inode
/proc/PID/fd    the open files of a process; a socket's link reads "socket:[INODE]"
"""

import os
from pathlib import Path

PROC = Path("/proc")
LISTENS = "0A"
ADDRESS, STATE, INODE = 1, 3, 9
SHOWN_MAX = 60  # characters of a command line


def owner_of(port: int) -> str | None:
    """`COMMAND (process 123)`; None if it is not known, as for processes of other users."""
    links = {f"socket:[{inode}]" for inode in _inodes(port)}
    for process in PROC.glob("[0-9]*") if links else ():
        try:
            opened = {os.readlink(each) for each in (process / "fd").iterdir()}
        except OSError:
            continue  # the process has ended, or belongs to another user
        if opened & links:
            return f"{_command(process)} (process {process.name})"
    return None


def _inodes(port: int) -> set[str]:
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for columns in map(str.split, lines):
            number = int(columns[ADDRESS].rpartition(":")[2], 16)
            if number == port and columns[STATE] == LISTENS:
                inodes.add(columns[INODE])
    return inodes


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "a program"
    return " ".join(" ".join(words).split())[:SHOWN_MAX] or "a program"
