"""What the registry answers with: schemas in their places, configurations, modes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Schema

# A JSON object that is kept as it came: metadata, rule sets, unknown fields of a configuration.
JsonObject = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema where it is registered; a soft deleted one still has its place."""

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
    """What may be done with a subject."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"


@dataclass(frozen=True, slots=True)
class SubjectConfig:
    """The configuration of a subject, a context or everything.

    `fields` are the other fields of the request by their JSON names (normalize, alias,
    compatibilityGroup, defaultMetadata, overrideMetadata, ...), kept as they came.
    """

    level: CompatibilityLevel | None = None
    fields: JsonObject = field(default_factory=dict)
