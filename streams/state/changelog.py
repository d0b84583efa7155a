"""Changelogs: the name and the configuration of a store's topic; as in Kafka Streams.

    key-value, LRU    compact
    window, session   compact,delete; retention.ms = retention + 24 h
    versioned         compact; min.compaction.lag.ms = history + 24 h

The records of a changelog have the keys of `key_layout` without segments, plain values, and as
timestamp that of the value (for a version, the start of its validity).
"""

from collections.abc import Mapping
from types import MappingProxyType

from streams.state.store import NO_LIMIT, StoreKind, StoreSpec

ADDITIONAL_RETENTION_MS = 24 * 60 * 60 * 1000

_BY_TIME = frozenset({StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW, StoreKind.SESSION})


def changelog_name(store: str) -> str:
    """The name of a store's changelog, without the application's id."""
    return f"{store}-changelog"


def changelog_config(
    spec: StoreSpec,
    additional_retention_ms: int = ADDITIONAL_RETENTION_MS,
    topic_config: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Settings of a store's changelog topic; the user's settings of the store take precedence.

    `topic_config` are the user's settings of all internal topics.
    """
    config = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    if spec.kind in _BY_TIME and spec.retention_ms != NO_LIMIT:
        config["cleanup.policy"] = "compact,delete"
        config["retention.ms"] = str(
            min(spec.retention_ms + additional_retention_ms, (1 << 63) - 1)
        )
    elif spec.kind is StoreKind.VERSIONED and spec.history_ms != NO_LIMIT:
        config["min.compaction.lag.ms"] = str(
            min(spec.history_ms + additional_retention_ms, (1 << 63) - 1)
        )
    return config | dict(topic_config) | dict(spec.topic_config)
