"""The Java client, unchanged, against the broker: one JVM runs all scenarios, each has its test."""

from pathlib import Path

import pytest

from tests.compatibility.conftest import Facts, Target, facts_of
from tests.support.apache_kafka import KafkaRelease, java_command, run_java
from tests.support.stored_batches import stored_compression

pytestmark = [pytest.mark.slow, pytest.mark.peer]

SOURCE = Path(__file__).parents[1] / "support" / "java" / "ClientScenarios.java"
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
PROTOCOLS = ("range", "cooperative", "consumer")
SCENARIOS = (
    "topics",
    *(f"compression-{compression}" for compression in COMPRESSIONS),
    *(f"rebalance-{protocol}" for protocol in PROTOCOLS),
    *(f"resume-{protocol}" for protocol in PROTOCOLS),
    *("static-range", "static-consumer"),
    *("transactional-offsets-range", "transactional-offsets-consumer"),
    *("pattern", "groups", "idempotent", "transactions", "open-transaction"),
    *("fencing", "timestamps", "delete-records"),
)


@pytest.fixture(scope="module")
def facts(apache_kafka: KafkaRelease, bootstrap: str) -> Facts:
    """What the client saw in a scenario; a scenario that failed fails its own test only."""
    class_path = apache_kafka.compile(SOURCE)
    command = java_command(class_path, "ClientScenarios", bootstrap, *SCENARIOS)
    printed = run_java(command, timeout_s=200)
    return facts_of(printed)


def test_topics_are_created_described_altered_and_deleted(facts: Facts) -> None:
    assert facts("topics") == {
        "refusal": "TopicExistsException",
        "retention": "5000",
        "brokers": 1,
        "leaders": 1,
        "elections": 1,
    }


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_come_back_whole_under_every_compression(
    facts: Facts, target: Target, compression: str
) -> None:
    seen = facts(f"compression-{compression}")
    topic = seen.pop("topic")
    assert seen == {
        "offsets": list(range(100)),
        "keys": [f"key-{number}" for number in range(100)],
        "values": [f"{number}-{'abc' * 50}" for number in range(100)],
        "timestamps": list(range(100)),
        "header": "number=7",
        "null_header": True,
    }
    assert stored_compression(target.data_dir, str(topic), 1) == compression


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_shares_partitions_as_members_come_and_go(facts: Facts, protocol: str) -> None:
    assert facts(f"rebalance-{protocol}") == {
        "alone": [40],
        "shared": [20, 20],
        "again": [40],
        "distinct": 120,
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_resumes_after_its_committed_offsets(facts: Facts, protocol: str) -> None:
    assert facts(f"resume-{protocol}") == {"offsets": [7, 8, 9], "notes": ["seven"]}


@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_a_static_member_comes_back_without_a_rebalance(facts: Facts, protocol: str) -> None:
    assert facts(f"static-{protocol}") == {"same": True, "rebalances": 0}


def test_a_pattern_subscribes_to_all_topics_it_fits(facts: Facts) -> None:
    assert facts("pattern") == {"assigned": 2}


def test_groups_are_described_altered_and_deleted(facts: Facts) -> None:
    common = {"state": "Stable", "assigned": 4, "offset": 3, "offset-deleted": True}
    classic = {"type": "Classic", "assignor": "range", "deleted": True, **common}
    consumer = {"type": "Consumer", "assignor": "uniform", "deleted": True, **common}
    assert facts("groups") == {
        **{f"range-{name}": value for name, value in classic.items()},
        **{f"consumer-{name}": value for name, value in consumer.items()},
    }


def test_an_idempotent_producer_keeps_order_and_count(facts: Facts) -> None:
    seen = facts("idempotent")
    assert seen["offsets"] == list(range(400))
    assert seen["values"] == [str(number) for number in range(400)]


def test_transactions_are_read_by_their_outcome(facts: Facts) -> None:
    assert facts("transactions") == {
        "committed": {"kept": 16, "end": 40},
        "uncommitted": {"kept": 16, "dropped": 8, "end": 40},
    }


def test_an_open_transaction_is_listed_and_holds_back_readers(facts: Facts) -> None:
    assert facts("open-transaction") == {
        "state": "Ongoing",
        "partitions": 1,
        "listed": True,
        "writers": 1,
        "stable": 0,
        "end": 1,
    }


@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_offsets_in_a_transaction_follow_its_outcome(facts: Facts, protocol: str) -> None:
    assert facts(f"transactional-offsets-{protocol}") == {"committed": 4}


def test_a_new_transactional_producer_fences_the_old_one(facts: Facts) -> None:
    assert facts("fencing") == {
        "refusal": "ProducerFencedException",
        "values": ["of the new one"],
    }


def test_offsets_are_found_by_timestamp_and_seeked_to(facts: Facts) -> None:
    assert facts("timestamps") == {
        "found": 50,
        "timestamp": 500,
        "none": True,
        "newest": 99,
        "beginning": 0,
        "end": 100,
        "last": ["97", "98", "99"],
    }


def test_deleted_records_are_gone_for_readers(facts: Facts) -> None:
    assert facts("delete-records") == {"low": 6, "left": [6, 7, 8, 9]}
