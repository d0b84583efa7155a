"""Schema: the text of a schema as registered; ParsedSchema: its parsed form."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SchemaKind(StrEnum):
    """Kinds of schemas, by the registry's names."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to another schema: Avro's type, JSON's $ref, Protobuf's import."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a client sends it; `references` are in their original order."""

    text: str
    kind: SchemaKind = SchemaKind.AVRO
    references: tuple[Reference, ...] = ()


# The text of all schemas that a schema references, directly or indirectly, by reference name; each
# one comes after those that it references itself.
Resolved = Mapping[str, str]


class ParsedSchema(Protocol):
    """A validated schema; each kind adds what its serdes need."""

    @property
    def kind(self) -> SchemaKind:
        """Its language."""
        ...

    @property
    def canonical(self) -> str:
        """The text that is stored and compared, as in Confluent's registry."""
        ...

    def normalized(self) -> str:
        """The text in a fixed order, so that equivalent schemas have equal text."""
        ...

    def formatted(self, form: str) -> str:
        """The text in another form: Avro "resolved", Protobuf "serialized", or ValueError."""
        ...

    def record_name(self) -> str | None:
        """The full name of the record, message or title that it describes."""
        ...
