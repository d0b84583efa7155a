"""The records of source and sink tasks.

They are tuples: one is created per record and tuples are the fastest to create, and many records
are split and joined by columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, Self, TypeAlias, TypedDict, Unpack

from connect.data import ConnectSchema

TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime", "NoTimestampType"]


class Header(NamedTuple):
    """A header of a record; its schema may be None."""

    key: str
    schema: ConnectSchema | None
    value: object


class Changes(TypedDict, total=False):
    """The parts of a record that a transform may change."""

    topic: str
    partition: int
    key_schema: ConnectSchema | None
    key: object
    value_schema: ConnectSchema | None
    value: object
    timestamp_ms: int | None
    headers: Sequence[Header]


class SourceRecord(NamedTuple):
    """A record that a source task read, with the offset in the source to continue from after it."""

    source_partition: Mapping[str, object]
    source_offset: Mapping[str, object]
    topic: str
    partition: int | None = None
    key_schema: ConnectSchema | None = None
    key: object = None
    value_schema: ConnectSchema | None = None
    value: object = None
    timestamp_ms: int | None = None
    headers: Sequence[Header] = ()

    @classmethod
    def of_columns(cls, *columns: Iterable[object]) -> list[Self]:
        """Many records from columns of all their parts: fast, without type checks.

        All columns have the same length, including `itertools.repeat`; ValueError if not.
        """
        return list(map(partial(tuple.__new__, cls), zip(*columns, strict=True)))

    def changed(self, **changes: Unpack[Changes]) -> "SourceRecord":
        """A copy with some parts changed."""
        return self._replace(**changes)


class _SinkParts(NamedTuple):
    topic: str
    partition: int
    key_schema: ConnectSchema | None
    key: object
    value_schema: ConnectSchema | None
    value: object
    offset: int
    timestamp_ms: int | None
    timestamp_type: TimestampType
    headers: Sequence[Header]
    original_topic: str
    original_partition: int
    original_offset: int


class SinkRecord(_SinkParts):
    """A record of a topic for a sink task; the `original_...` parts are from before transforms."""

    __slots__ = ()

    def __new__(  # noqa: PLR0913 - a record has this many parts
        cls,
        topic: str,
        partition: int,
        key_schema: ConnectSchema | None,
        key: object,
        value_schema: ConnectSchema | None,
        value: object,
        offset: int,
        timestamp_ms: int | None = None,
        timestamp_type: TimestampType = "NoTimestampType",
        headers: Sequence[Header] = (),
    ) -> Self:
        """A record before any transform: the original position is its own."""
        parts = (topic, partition, key_schema, key, value_schema, value, offset)
        read = (timestamp_ms, timestamp_type, headers, topic, partition, offset)
        return tuple.__new__(cls, parts + read)

    @classmethod
    def of_columns(cls, *columns: Iterable[object]) -> list[Self]:
        """Many records; see SourceRecord.of_columns."""
        return list(map(partial(tuple.__new__, cls), zip(*columns, strict=True)))

    def changed(self, **changes: Unpack[Changes]) -> "SinkRecord":
        """A copy with some parts changed."""
        parts = dict(zip(self._fields, self, strict=False))
        parts.update(changes)
        if len(parts) != len(self._fields):
            raise TypeError(f"a record has no {', '.join(changes.keys() - set(self._fields))}")
        return tuple.__new__(SinkRecord, parts.values())


Record: TypeAlias = SourceRecord | SinkRecord
