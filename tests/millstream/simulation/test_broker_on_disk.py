"""A broker on a simulated disk: what it acknowledged is there after kills and losses of power."""

import pytest

from broker.config import BrokerConfig
from tests.millstream.simulation.broker_on_disk import BrokerOnDisk, End, broker_on_disk

SEEDS = 40
ROUNDS = 4


def config_of(durability: str) -> BrokerConfig:
    return BrokerConfig(
        durability=durability,
        log_segment_bytes=4_000,
        log_index_interval_bytes=200,
        offsets_topic_num_partitions=2,
        offsets_topic_segment_bytes=1_000,
        log_flush_offset_checkpoint_interval_ms=300,
        log_cleaner_backoff_ms=200,
        log_retention_check_interval_ms=500,
    )


def run(seed: int, end: End) -> BrokerOnDisk:
    config = config_of("fsync" if end == "power loss" else "kafka")
    with broker_on_disk(seed, config) as machine:
        for _ in range(ROUNDS):
            machine.round(end)
        machine.check()
        return machine


@pytest.mark.slow
@pytest.mark.parametrize("end", ["kill", "power loss"])
def test_what_was_acknowledged_is_there_after_a_restart(end: End) -> None:
    acknowledged = 0
    for seed in range(SEEDS):
        machine = run(seed, end)
        acknowledged += len(machine.promised.records)
    assert acknowledged > 20 * SEEDS


def test_the_same_seed_gives_the_same_history() -> None:
    for end in ("kill", "power loss"):
        first, second = run(7, end), run(7, end)
        assert first.simulation.history.digest() == second.simulation.history.digest()
        assert first.disk.digest() == second.disk.digest()
        assert first.simulation.history.digest() != run(8, end).simulation.history.digest()
