"""kafkajs, unchanged, against the broker: one Node process runs all scenarios."""

import pytest

from tests.compatibility.conftest import Facts, Target, facts_of
from tests.support.kafkajs_client import fetch_kafkajs, run_scenarios
from tests.support.peer import PeerMissing, skip_without_peer
from tests.support.stored_batches import stored_compression

pytestmark = [pytest.mark.slow, pytest.mark.peer]

# The client comes with gzip only; the others need codecs from elsewhere.
COMPRESSIONS = ("none", "gzip")
SCENARIOS = (
    "topics",
    *(f"compression-{compression}" for compression in COMPRESSIONS),
    *("rebalance", "resume", "groups", "idempotent"),
    *("transactions", "transactional-offsets", "fencing", "timestamps", "delete-records"),
)


@pytest.fixture(scope="module")
def facts(bootstrap: str) -> Facts:
    """What the client saw in a scenario; a scenario that failed fails its own test only."""
    try:
        modules = fetch_kafkajs()
    except PeerMissing as missing:
        skip_without_peer(f"no kafkajs: {missing}")
    printed = run_scenarios(modules, bootstrap, *SCENARIOS)
    return facts_of(printed)


def test_topics_are_created_described_altered_and_deleted(facts: Facts) -> None:
    assert facts("topics") == {"again": False, "retention": "6000", "policy": "compact"}


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
        "header": "7",
    }
    assert stored_compression(target.data_dir, str(topic), 1) == compression


def test_a_group_shares_partitions_as_members_come_and_go(facts: Facts) -> None:
    assert facts("rebalance") == {
        "alone": [40],
        "shared": [20, 20],
        "again": [40],
        "distinct": 120,
    }


def test_a_group_resumes_after_its_committed_offsets(facts: Facts) -> None:
    assert facts("resume") == {"offsets": [7, 8, 9], "notes": ["seven"]}


def test_groups_are_described_altered_and_deleted(facts: Facts) -> None:
    assert facts("groups") == {
        "state": "Stable",
        "protocol": "RoundRobinAssigner",
        "assigned": 4,
        "offset": "3",
        "deleted": True,
    }


def test_an_idempotent_producer_keeps_order_and_count(facts: Facts) -> None:
    assert facts("idempotent") == {"offsets": list(range(200)), "values": list(range(200))}


def test_transactions_are_read_by_their_outcome(facts: Facts) -> None:
    assert facts("transactions") == {
        "committed": {"kept": 16, "end": 40},
        "uncommitted": {"kept": 16, "dropped": 8, "end": 40},
    }


def test_offsets_in_a_transaction_follow_its_outcome(facts: Facts) -> None:
    assert facts("transactional-offsets") == {"committed": "4"}


def test_a_new_transactional_producer_fences_the_old_one(facts: Facts) -> None:
    assert facts("fencing") == {
        "refusal": "INVALID_PRODUCER_EPOCH",
        "values": ["of the new one"],
    }


def test_offsets_are_found_by_timestamp_and_seeked_to(facts: Facts) -> None:
    assert facts("timestamps") == {
        "low": "0",
        "high": "100",
        "found": "50",
        "last": ["97", "98", "99"],
    }


def test_deleted_records_are_gone_for_readers(facts: Facts) -> None:
    assert facts("delete-records") == {"left": [6, 7, 8, 9]}
