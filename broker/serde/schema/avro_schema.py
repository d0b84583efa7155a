"""AvroSchema: a validated Avro schema, in the forms that the registry and serdes need."""

from dataclasses import dataclass
from functools import cached_property

import fastavro

from broker.errors import SchemaError
from broker.serde.schema.avro_parser import AvroParser
from broker.serde.schema.avro_text import NOWHERE, AvroPrinter, FastavroPrinter
from broker.serde.schema.avro_types import RECORDS, AvroType
from broker.serde.schema.json_text import read_json, write_json
from broker.serde.schema.schema import Resolved, SchemaKind


@dataclass(frozen=True, eq=False)
class AvroSchema:
    """A parsed Avro schema.

    `root` is the tree of types, with references expanded; `source` is the parsed JSON of the text;
    `fastavro` is for fastavro's readers and writers and needs no other schema.
    """

    root: AvroType
    source: object
    references: frozenset[str]
    canonical: str
    fastavro: object
    kind: SchemaKind = SchemaKind.AVRO

    @cached_property
    def resolved(self) -> str:
        """The canonical text with references expanded."""
        return write_json(AvroPrinter().json(self.root))

    def normalized(self) -> str:
        """The canonical text with properties, aliases and objects in defaults sorted."""
        return write_json(AvroPrinter(self.references, sort=True).json(self.root))

    def formatted(self, form: str) -> str:
        """The canonical text for "", or "resolved": with references expanded."""
        match form:
            case "":
                return self.canonical
            case "resolved":
                return self.resolved
            case _:
                raise ValueError(f'an Avro schema has no form "{form}"')

    def record_name(self) -> str | None:
        """The full name of the record; other types have none."""
        return self.root.name if self.root.kind in RECORDS else None


def parse_avro(text: str, resolved: Resolved) -> AvroSchema:
    """Parse a schema; SchemaError if it is invalid."""
    parser = AvroParser()
    for name, referenced in resolved.items():
        try:
            parser.parse(read_json(referenced))
        except SchemaError as error:
            raise SchemaError(
                f'reference "{name}": {error.message}', at=error.at, hint=error.hint
            ) from error
    known = frozenset(parser.names)
    source = read_json(text)
    root = parser.parse(source)
    return AvroSchema(
        root=root,
        source=source,
        references=known,
        canonical=write_json(AvroPrinter(known).json(root)),
        fastavro=for_fastavro(root),
    )


def for_fastavro(root: AvroType) -> object:
    """The schema in fastavro's parsed form."""
    try:
        parsed: object = fastavro.parse_schema(FastavroPrinter().json(root))
    except SchemaError:
        raise
    except Exception as error:  # fastavro raises whatever its dictionaries raise
        raise SchemaError(f"fastavro cannot use the schema: {error}") from error
    return with_short_names(parsed, {})


def with_short_names(value: object, done: dict[int, object]) -> object:
    """A schema parsed by fastavro, without the placeholder for the empty namespace."""
    if isinstance(value, str):
        return value.removeprefix(f"{NOWHERE}.")
    if not isinstance(value, dict | list):
        return value
    # The branches of a union share one dictionary of names.
    if id(value) not in done:
        done[id(value)] = (
            {with_short_names(key, done): with_short_names(value[key], done) for key in value}
            if isinstance(value, dict)
            else [with_short_names(each, done) for each in value]
        )
    return done[id(value)]
