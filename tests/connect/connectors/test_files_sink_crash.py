"""The files sink is killed at random steps: each record is in the finished files exactly once."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.connect.connectors.files_sink_driver import RECORDS, all_ids, finished_files


def ids_in(path: Path) -> list[int]:
    if path.suffix == ".parquet":
        return [int(found) for found in parquet.read_table(path)["id"].to_pylist()]
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line)["id"] for line in text.splitlines()]


def drive(directory: Path, seed: int, *settings: str) -> int:
    command = [sys.executable, "-m", "tests.connect.connectors.files_sink_driver"]
    done = subprocess.run(
        [*command, str(directory), str(seed), *settings],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


WAYS = {
    "json by partition": ("flush.size=50",),
    # Unlike the others, these would be cut elsewhere after every kill.
    "json on schedule": ("flush.size=1000", "rotate.schedule.interval.ms=1000"),
    "parquet by partition": ("flush.size=50", "format=parquet"),
    "compressed json by field": (
        "flush.size=40",
        "compression.type=gzip",
        "partitioner.class=field",
        "partition.field.name=country",
    ),
    "parquet by time": (
        "flush.size=1000",
        "format=parquet",
        "rotate.interval.ms=5000",
        "partitioner.class=time",
        "path.format='hour'=HH/'minute'=mm",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "seed", [1, *[pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 30)]]
)
def test_a_sink_that_is_killed_at_random_writes_each_record_exactly_once(
    tmp_path: Path, way: str, seed: int
) -> None:
    directory = tmp_path / "out"
    kills = drive(directory, seed, *WAYS[way])
    files = finished_files(directory)
    found = [one for path in files for one in ids_in(path)]
    assert kills > 0
    assert sorted(found) == all_ids()
    for path in files:
        # The name says the offset of the first record, and offsets rise inside of a file.
        offsets = [one // 10 for one in ids_in(path)]
        assert path.name.startswith(f"orders+{ids_in(path)[0] % 10}+{offsets[0]:010d}.")
        assert offsets == sorted(offsets)


@pytest.mark.slow
def test_files_by_count_are_the_same_with_and_without_kills(tmp_path: Path) -> None:
    drive(tmp_path / "killed", 5, "flush.size=64")
    names = [path.name for path in finished_files(tmp_path / "killed")]
    in_use = [offset for offset in range(RECORDS) if offset % 7 != 3]
    # A change of schema, at every 200th offset, finishes a file early.
    expected: list[int] = []
    for start in range(0, RECORDS, 200):
        run = [offset for offset in in_use if start <= offset < start + 200]
        expected += run[::64]
    assert names[: len(expected)] == [f"orders+0+{offset:010d}.json" for offset in expected]
