"""Catalog: the streams, tables and types that statements have created."""

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
    """The format of keys or values, with its WITH properties."""

    name: str
    wrapped: bool | None = None  # a single column; None: the format's default
    delimiter: str | None = None
    full_name: str | None = None
    schema_id: int | None = None
    nullable: str | None = None


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    """The column with the timestamp of rows, and its pattern if it is a string."""

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
    is_source: bool = False  # created by CREATE SOURCE: read-only
    query_id: str | None = None  # of the CREATE ... AS SELECT statement
    statement: str = ""
    partitions: int | None = None
    replicas: int | None = None
    retention_ms: int | None = None

    @property
    def shown_kind(self) -> str:
        """The kind, as in errors."""
        return self.kind.value.lower()


@dataclass(slots=True)
class Catalog:
    """All named objects; statements change it one at a time."""

    sources: dict[str, SourceInfo] = field(default_factory=dict)
    types: dict[str, DataType] = field(default_factory=dict)
