"""`python -m tests.millstream.old_data.make FOLDER NAME`: archive a data directory of this version.

The archives in tests/cases/data_directories were made by the version they are named after and stay
as they are: later versions must open them. NAME.killed.tar.xz is a directory after kill -9,
NAME.stopped.tar.xz the same after one more start and a clean stop.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

from tests.millstream.crash.up_process import UpProcess
from tests.millstream.old_data.contents import DEFAULTS, HELD, ORDERS, SETTINGS, fill, wait_results

ARCHIVED = ("data", "lines.txt")


def archive(folder: Path, target: Path) -> None:
    """Pack what the platform has written."""
    with tarfile.open(target, "w:xz") as packed:
        for name in ARCHIVED:
            packed.add(folder / name, name, filter=_without_logs)


def _without_logs(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """RocksDB's own log names the machine, and is not part of the data."""
    if Path(member.name).name.startswith("LOG"):
        return None
    member.uname = member.gname = ""
    member.uid = member.gid = 0
    return member


def main(target: Path, name: str) -> None:
    """Fill a platform, kill it, start it again, stop it."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        up = UpProcess(Path(temporary), {**SETTINGS, **DEFAULTS})
        try:
            up.start()
            up.wait_ready()
            fill(up)
            up.kill()
            archive(up.folder, target / f"{name}.killed.tar.xz")
            up.start()
            up.wait_ready()
            wait_results(up, ORDERS, held=HELD)
            up.stop()
            archive(up.folder, target / f"{name}.stopped.tar.xz")
        finally:
            up.discard()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
