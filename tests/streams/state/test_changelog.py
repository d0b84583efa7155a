"""Changelog topics are configured as Kafka Streams configures them."""

import pytest

from streams.state.changelog import changelog_config, changelog_name
from streams.state.store import StoreKind, StoreSpec

DAY_MS = 86_400_000


@pytest.mark.parametrize("kind", [StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED_KEY_VALUE])
def test_a_key_value_store_has_a_compacted_topic(kind: StoreKind) -> None:
    assert changelog_name("counts") == "counts-changelog"
    assert changelog_config(StoreSpec("counts", kind)) == {
        "cleanup.policy": "compact",
        "message.timestamp.type": "CreateTime",
    }


@pytest.mark.parametrize(
    "kind", [StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW, StoreKind.SESSION]
)
def test_a_store_by_time_has_a_topic_that_forgets_a_day_later(kind: StoreKind) -> None:
    config = changelog_config(StoreSpec("counts", kind, retention_ms=1000))
    assert config["cleanup.policy"] == "compact,delete"
    assert config["retention.ms"] == str(1000 + DAY_MS)
    config = changelog_config(StoreSpec("counts", kind, retention_ms=1000), 5)
    assert config["retention.ms"] == "1005"


def test_versions_are_not_compacted_before_they_are_history() -> None:
    config = changelog_config(StoreSpec("prices", StoreKind.VERSIONED, history_ms=1000))
    assert config["cleanup.policy"] == "compact"
    assert config["min.compaction.lag.ms"] == str(1000 + DAY_MS)


def test_settings_of_the_user_win() -> None:
    spec = StoreSpec(
        "counts", StoreKind.WINDOW, retention_ms=1, topic_config={"retention.ms": "7", "x": "y"}
    )
    config = changelog_config(spec)
    assert config["retention.ms"] == "7"
    assert config["x"] == "y"
