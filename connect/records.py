"""The records that tasks give and take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from connect.data import ConnectSchema

TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime", "NoTimestampType"]


class Header(NamedTuple):
    """A header of a record; its schema may be None."""

    key: str
    schema: ConnectSchema | None
    value: object


class Changes(TypedDict, total=False):
    """What a transform may change."""

    topic: str
    partition: int
    key_schema: ConnectSchema | None
    key: object
    value_schema: ConnectSchema | None
    value: object
    timestamp_ms: int | None
    headers: list[Header]


@dataclass(slots=True)
class SourceRecord:
    """A record that a source task read, with the place in the source to go on from after it.

    Nobody changes a record or its headers in place: `changed` makes another.
    """

    source_partition: Mapping[str, object]
    source_offset: Mapping[str, object]
    topic: str
    partition: int | None = None
    key_schema: ConnectSchema | None = None
    key: object = None
    value_schema: ConnectSchema | None = None
    value: object = None
    timestamp_ms: int | None = None
    headers: list[Header] = field(default_factory=list)

    def changed(self, **changes: Unpack[Changes]) -> "SourceRecord":
        """A copy with some parts changed."""
        copy = SourceRecord(
            self.source_partition,
            self.source_offset,
            self.topic,
            self.partition,
            self.key_schema,
            self.key,
            self.value_schema,
            self.value,
            self.timestamp_ms,
            self.headers,
        )
        for name, value in changes.items():
            setattr(copy, name, value)
        return copy


@dataclass(slots=True)
class SinkRecord:
    """A record of a topic on its way to a sink task; `original_...` say where it was read.

    Nobody changes a record or its headers in place: `changed` makes another.
    """

    topic: str
    partition: int
    key_schema: ConnectSchema | None
    key: object
    value_schema: ConnectSchema | None
    value: object
    offset: int
    timestamp_ms: int | None = None
    timestamp_type: TimestampType = "NoTimestampType"
    headers: list[Header] = field(default_factory=list)
    original_topic: str = ""
    original_partition: int = -1
    original_offset: int = -1

    def __post_init__(self) -> None:
        """A record that no transform has seen is where it was read."""
        if not self.original_topic:
            self.original_topic = self.topic
            self.original_partition = self.partition
            self.original_offset = self.offset

    def changed(self, **changes: Unpack[Changes]) -> "SinkRecord":
        """A copy with some parts changed."""
        copy = SinkRecord(
            self.topic,
            self.partition,
            self.key_schema,
            self.key,
            self.value_schema,
            self.value,
            self.offset,
            self.timestamp_ms,
            self.timestamp_type,
            self.headers,
            self.original_topic,
            self.original_partition,
            self.original_offset,
        )
        for name, value in changes.items():
            setattr(copy, name, value)
        return copy


Record: TypeAlias = SourceRecord | SinkRecord
