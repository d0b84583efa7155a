"""What stores may take of memory is what the settings say."""

from pathlib import Path

import pytest

from broker import Broker
from broker.client import producer
from streams import AppState, StreamsApp, StreamsBuilder
from streams.state.rocks import limit_memory, share_memory, shared_memory
from tests.streams.runtime.apps import DEADLINE_MS, make_topics
from tests.support.peer import wait_until

KEYS = 4000
VALUE = b"x" * 500
MIB = 1 << 20


def test_databases_with_the_same_budgets_share_one_memory() -> None:
    before = shared_memory()
    try:
        limit_memory(3 * MIB, MIB)
        small = shared_memory()
        assert small.budgets == (3 * MIB, MIB)
        limit_memory(3 * MIB, MIB)
        assert shared_memory() is small
        limit_memory(4 * MIB, MIB)
        assert shared_memory() is not small
    finally:
        share_memory(before)


@pytest.mark.slow
def test_stores_larger_than_their_budget_stay_within_it(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=bytes, store="table")
    before = shared_memory()
    with Broker(data_directory=str(tmp_path / "broker")) as broker:
        make_topics(broker, **{"in": 2})
        with producer(broker) as out:
            for number in range(KEYS):
                out.send("in", VALUE, f"key-{number}".encode(), timestamp_ms=number)
        with StreamsApp(
            builder.build(),
            application_id="small",
            broker=broker,
            state_dir=tmp_path / "state",
            state_buffer_max_bytes=MIB // 8,
            state_cache_max_bytes=MIB // 4,
            rocksdb_block_cache_bytes=2 * MIB,
            rocksdb_write_buffer_bytes=MIB,
        ) as app:
            assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
            assert shared_memory().budgets == (2 * MIB, MIB)
            wait_until(lambda: len(list(app.store("table").all())) == KEYS, "all rows")
            wait_until(lambda: app.runners[0].metrics.commits_total > 0, "a commit by bytes")
            (first, second) = app.runners[0].tasks.snapshot  # type: ignore[union-attr]
            used = first.state.memory_bytes + second.state.memory_bytes
            # The buffer is looked at after each round of records.
            assert 0 < used <= MIB // 4 + MIB // 8 + 2 * 1000 * 700 < KEYS * len(VALUE)
    share_memory(before)
