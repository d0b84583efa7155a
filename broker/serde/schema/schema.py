"""Schema: a schema's text as it is registered; ParsedSchema: what was understood of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SchemaKind(StrEnum):
    """Languages of schemas, by the names the registry has for them."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that a schema's text names: Avro's type, JSON's $ref, Protobuf's import."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a client sends it; `references` are in the order that they were given."""

    text: str
    kind: SchemaKind = SchemaKind.AVRO
    references: tuple[Reference, ...] = ()


# The text of all schemas that a schema refers to, also indirectly, by the names used in the
# referring schemas; each one comes after those that it refers to itself.
Resolved = Mapping[str, str]


class ParsedSchema(Protocol):
    """A schema whose text was checked; each kind adds what its serdes need."""

    @property
    def kind(self) -> SchemaKind:
        """Its language."""
        ...

    @property
    def canonical(self) -> str:
        """The text that is stored and compared: without what has no meaning, as Confluent's."""
        ...

    def normalized(self) -> str:
        """The text with everything in one order, so that equivalent schemas have equal text."""
        ...

    def formatted(self, form: str) -> str:
        """The text in another form: Avro "resolved", Protobuf "serialized"; else ValueError."""
        ...

    def record_name(self) -> str | None:
        """The full name of the record, message or title that it describes."""
        ...
