"""Values that the registry returns: registered schemas, configurations, modes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Schema

# A JSON object that is stored unchanged: metadata, rule sets, unknown configuration fields.
JsonObject = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A registered schema; soft deleted ones still exist."""

    subject: str
    version: int
    schema_id: int
    guid: str
    schema: Schema
    metadata: JsonObject | None = None
    rule_set: JsonObject | None = None
    deleted: bool = False


class SubjectVersion(NamedTuple):
    """One version of a subject, by name."""

    subject: str
    version: int


class Mode(StrEnum):
    """The allowed operations of a subject."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"


@dataclass(frozen=True, slots=True)
class SubjectConfig:
    """The configuration of a subject, of a context, or globally.

    `fields` are the other fields of the request by their JSON names (normalize, alias,
    compatibilityGroup, defaultMetadata, overrideMetadata, ...), stored unchanged.
    """

    level: CompatibilityLevel | None = None
    fields: JsonObject = field(default_factory=dict)
