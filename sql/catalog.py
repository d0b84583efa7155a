"""Catalog: the streams, tables and types that statements have made."""

from dataclasses import dataclass, field

from sql.datatypes import DataType
from sql.schema import Schema
from sql.syntax.queries import WindowKind
from sql.syntax.statements import SourceKind


@dataclass(frozen=True, slots=True)
class WindowInfo:
    """The windows of a source's keys; sessions have no size."""

    kind: WindowKind
    size_ms: int | None


@dataclass(frozen=True, slots=True)
class FormatInfo:
    """How keys or values are bytes: a format's name and what its WITH properties say."""

    name: str
    wrapped: bool | None = None  # of a single column; None: as the format does by itself
    delimiter: str | None = None
    full_name: str | None = None
    schema_id: int | None = None
    nullable: str | None = None


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    """Which column is the time of a row, and the pattern of its text if it is one."""

    name: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A stream or table."""

    name: str
    kind: SourceKind
    schema: Schema
    topic: str
    key_format: FormatInfo
    value_format: FormatInfo
    window: WindowInfo | None = None
    timestamp: TimestampColumn | None = None
    is_source: bool = False  # made by CREATE SOURCE: read-only
    query_id: str | None = None  # of the statement that made it AS SELECT
    statement: str = ""
    partitions: int | None = None
    replicas: int | None = None
    retention_ms: int | None = None

    @property
    def shown_kind(self) -> str:
        """As errors name it."""
        return self.kind.value.lower()


@dataclass(slots=True)
class Catalog:
    """Everything that has a name; statements change it one at a time."""

    sources: dict[str, SourceInfo] = field(default_factory=dict)
    types: dict[str, DataType] = field(default_factory=dict)
