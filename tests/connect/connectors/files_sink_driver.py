"""`python -m tests.connect.connectors.files_sink_driver DIRECTORY SEED NAME=VALUE...`

Drives the files sink as a worker does, in processes that are killed at random steps (a file that is
opened, renamed or removed, a folder that is made, a batch that is put) until one gets to the end.
Prints how many were killed. A finished file that changes afterwards is an error.
"""

import json
import os
import signal
import sys
from pathlib import Path
from random import Random

from broker.clock import ManualClock
from broker.model import TopicPartition
from connect import data
from connect.connectors.files_sink import FilesSinkTask
from connect.data import Struct
from connect.records import SinkRecord
from tests.connect.connectors.contexts import HandSinkContext

RECORDS = 600
PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
SCHEMAS = (
    data.struct("order", {"id": data.INT64, "country": data.STRING}),
    data.struct("order", {"id": data.INT64, "country": data.STRING, "note": data.OPTIONAL_STRING}),
)
STEPS = ("open", "os.rename", "os.remove", "os.mkdir", "connect.put")
KILLED_AT_MAX = 40
KILLS_MAX = 500


def record(partition: TopicPartition, offset: int) -> SinkRecord | None:
    """The record at an offset; some offsets have none, as in a compacted topic."""
    if offset % 7 == 3:
        return None
    schema = SCHEMAS[offset // 200 % 2]
    country = ("CH", "DE", "FR")[Random(offset).randrange(3)]
    values: list[object] = [offset * 10 + partition.partition, country]
    row = Struct(schema, values if schema is SCHEMAS[0] else [*values, None])
    return SinkRecord(*partition, None, None, schema, row, offset, 1_700_000_000_000 + offset * 100)


def all_ids() -> list[int]:
    """What has to be in the files, once each."""
    places = [(partition, offset) for offset in range(RECORDS) for partition in PARTITIONS]
    return [offset * 10 + one.partition for one, offset in places if record(one, offset)]


def finished_files(directory: Path) -> list[Path]:
    """The files that others may read, in the order of their names."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sorted(path for path in files if ".unfinished" not in path.parts)


class GroupOffsets:
    """Committed offsets, kept in a file as a broker keeps them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[TopicPartition, int]:
        if not self._path.exists():
            return dict.fromkeys(PARTITIONS, 0)
        stored = json.loads(self._path.read_text())
        return {TopicPartition(topic, partition): offset for topic, partition, offset in stored}

    def write(self, offsets: dict[TopicPartition, int]) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps([[*partition, offset] for partition, offset in offsets.items()]))
        new.replace(self._path)


def run(config: dict[str, str], random: Random) -> None:
    """Puts all records that are left, in batches of random sizes, with commits now and then."""
    group = GroupOffsets(
        Path(config["directory"]).parent / f"{Path(config['directory']).name}.group"
    )
    clock = ManualClock(random.randrange(1_000_000))
    task = FilesSinkTask(clock)
    context = HandSinkContext()
    task.context = context
    task.start(config)
    committed = group.read()
    task.open(PARTITIONS)
    position = {**committed, **context.rewound}
    while any(position[partition] < RECORDS for partition in PARTITIONS):
        batch: list[SinkRecord] = []
        for partition in PARTITIONS:
            start = position[partition]
            end = min(start + random.randrange(60), RECORDS)
            found = (record(partition, offset) for offset in range(start, end))
            batch += [row for row in found if row is not None]
            position[partition] = end
        sys.audit("connect.put", config["directory"])
        clock.advance(random.randrange(1_000))
        task.put(batch)
        if random.random() < 0.3:
            committed.update(task.pre_commit(position))
            group.write(committed)
    # The rest is finished as by a schedule, so that everything can be looked at.
    for files in task._open.values():
        if not files.is_empty:
            files.finish()


def run_until_killed(config: dict[str, str], random: Random) -> None:
    """The same in this process, which is killed at a random step."""
    left = random.randrange(1, KILLED_AT_MAX)

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in STEPS and str(arguments[0]).startswith(config["directory"]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    run(config, random)


def main() -> None:
    """Starts processes until one is not killed."""
    directory, seed, *settings = sys.argv[1:]
    config = {"directory": directory, **dict(setting.split("=", 1) for setting in settings)}
    FilesSinkTask().start(config)  # imports what all of them need
    kills = 0
    finished: dict[Path, int] = {}
    while kills < KILLS_MAX:
        child = os.fork()
        if child == 0:
            run_until_killed(config, Random(int(seed) * 1_000 + kills))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        now = {path: path.stat().st_ino for path in finished_files(Path(directory))}
        assert finished.items() <= now.items(), "a finished file has changed"
        finished = now
        if status == 0:
            sys.stdout.write(f"{kills}\n")
            return
        assert os.WIFSIGNALED(status), f"the sink failed with status {status}"
        kills += 1
    raise AssertionError(f"not done after {kills} kills")


if __name__ == "__main__":
    main()
