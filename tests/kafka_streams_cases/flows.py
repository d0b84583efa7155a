"""What is known of each step of a case while its topology is built."""

from dataclasses import dataclass, replace
from typing import Any

from broker.serde import Serde
from streams.windows import (
    UNLIMITED_END_MS,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Windows,
    hopping,
    session,
    sliding,
    tumbling,
)
from tests.kafka_streams_cases.values import SERDES


@dataclass(frozen=True, slots=True)
class Flow:
    """The object of the DSL that a step gave, and the serdes of what flows there.

    `windows` are those of its keys when they are windowed (and of a windowed grouping).
    """

    # Any: streams, tables, groupings of the DSL, whose methods are called by name.
    handle: Any
    key: str
    value: str
    windows: Windows | None = None
    is_table: bool = False
    emit: str = "on_update"

    def but(self, handle: Any, **changes: Any) -> "Flow":
        """The same with another object of the DSL, and changes."""
        return replace(self, handle=handle, **changes)

    @property
    def key_serde(self) -> Serde[Any] | None:
        """The serde of plain keys; None for windowed ones, which the DSL knows itself."""
        return SERDES[self.key] if self.windows is None else None

    @property
    def value_serde(self) -> Serde[Any]:
        """The serde of the values."""
        return SERDES[self.value]


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """How to read a store: serdes of its keys and values, and what it has forgotten."""

    key: str
    value: str
    windows: Windows | None = None
    retention_ms: int | None = None
    keeps_the_edge: bool = False  # stores of on_close keep the row whose time is the very edge


def windows_of(window: dict[str, Any]) -> Windows:
    """The windows of a `windowed_by` step; without `grace_ms`, grace is 0."""
    grace = window.get("grace_ms", 0)
    match window["type"]:
        case "tumbling":
            return tumbling(window["size_ms"], grace=grace)
        case "hopping":
            return hopping(window["size_ms"], window["advance_ms"], grace=grace)
        case "sliding":
            return sliding(window["difference_ms"], grace=grace)
        case "session":
            return session(window["gap_ms"], grace=grace)
        case "unlimited":
            return UnlimitedWindows(window.get("start_ms", 0))
        case other:
            raise ValueError(f'windows of type "{other}" are not known')


def default_retention_ms(windows: Windows) -> int:
    """How long Kafka keeps a window after its time, when nothing is said."""
    match windows:
        case TimeWindows():
            return windows.size_ms + windows.grace_ms
        case SlidingWindows():
            return 2 * windows.difference_ms + windows.grace_ms
        case SessionWindows():
            return windows.gap_ms + windows.grace_ms
        case _:
            return UNLIMITED_END_MS
