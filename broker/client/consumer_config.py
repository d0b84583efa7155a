"""Settings of a consumer: Kafka's names with underscores, Kafka's defaults."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.client.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from broker.client.config import at_least, one_of
from broker.errors import ConfigError

ASSIGNORS: dict[str, type[Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """The settings for reading; those of group membership are in GroupConfig."""

    auto_offset_reset: str = "latest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    max_poll_records: int = 500
    check_crcs: bool = True
    client_rack: str = ""
    exclude_internal_topics: bool = True
    partition_assignment_strategy: Sequence[str | Assignor] = ("range", "cooperative-sticky")
    fetch_buffer_bytes: int = 64 * 1024 * 1024  # fetched and not yet returned, of all partitions

    def __post_init__(self) -> None:
        one_of("auto_offset_reset", self.auto_offset_reset, ("earliest", "latest", "none"))
        one_of("isolation_level", self.isolation_level, ("read_uncommitted", "read_committed"))
        for name in ("auto_commit_interval_ms", "fetch_min_bytes", "fetch_max_wait_ms"):
            at_least(name, getattr(self, name), 0)
        for name in ("fetch_max_bytes", "max_partition_fetch_bytes", "max_poll_records"):
            at_least(name, getattr(self, name), 1)
        at_least("fetch_buffer_bytes", self.fetch_buffer_bytes, 1)
        if not self.partition_assignment_strategy:
            raise ConfigError(
                '"partition_assignment_strategy" is empty', hint=f"name one of {list(ASSIGNORS)}"
            )

    @property
    def isolation(self) -> int:
        """The isolation level as in the protocol."""
        return 1 if self.isolation_level == "read_committed" else 0

    def assignors(self) -> list[Assignor]:
        """New assignors, one per strategy, preferred first."""
        made = []
        for strategy in self.partition_assignment_strategy:
            if isinstance(strategy, str):
                one_of("partition_assignment_strategy", strategy, tuple(ASSIGNORS))
                made.append(ASSIGNORS[strategy]())
            else:
                made.append(strategy)
        return made
