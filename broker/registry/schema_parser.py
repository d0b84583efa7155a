"""SchemaParser: parses schemas with the schemas they refer to.

Schemas are parsed on demand: a registry of many schemas starts without parsing one. Recently parsed
ones are cached.
"""

from collections import OrderedDict
from dataclasses import dataclass

from broker.errors import SchemaError
from broker.registry import refusals
from broker.registry.fingerprint import guid_of
from broker.registry.state import RegistryState
from broker.registry.subject_names import context_of, in_context_of
from broker.registry.values import JsonObject, StoredSchema
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.schema import ParsedSchema, Reference, Schema, SchemaKind

CACHED_SCHEMAS_MAX = 1_000
CACHED_CHARACTERS_MAX = 16_000_000
REFERENCE_DEPTH_MAX = 64
REFERENCES_MAX = 1_000
LATEST = -1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schema from a client, in the form in which it would be stored."""

    subject: str
    schema: Schema
    parsed: ParsedSchema
    metadata: JsonObject | None
    rule_set: JsonObject | None
    guid: str

    def is_at(self, stored: StoredSchema) -> bool:
        """Whether a stored schema is equal to this one."""
        return stored.guid == self.guid and stored.schema.kind is self.schema.kind


class SchemaParser:
    """Parses schemas of one registry; used by one thread at a time."""

    def __init__(self, state: RegistryState) -> None:
        self._state = state
        # References of schemas are resolved differently in each context.
        self._parsed: OrderedDict[tuple[str, Schema], ParsedSchema] = OrderedDict()
        self._characters = 0  # of the cached schemas

    def forget(self) -> None:
        """Clear the cache: references may now resolve to other schemas."""
        self._parsed.clear()
        self._characters = 0

    def candidate(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool,
        metadata: JsonObject | None,
        rule_set: JsonObject | None,
    ) -> Candidate:
        """A schema in the form in which it is stored and compared; 42201 if it is invalid."""
        if not schema.text.strip():
            raise refusals.empty_schema()
        pinned = self._pinned(subject, schema)
        parsed = self.parse(subject, pinned)
        try:
            if not normalize:
                # Another registry may have used another canonical form: its schemas are not
                # changed.
                guid = guid_of(pinned, metadata, rule_set)
                if self._state.id_of(context_of(subject), guid, schema.kind) is not None:
                    return Candidate(subject, pinned, parsed, metadata, rule_set, guid)
            text = parsed.normalized() if normalize else parsed.canonical
            stored = Schema(text, schema.kind, pinned.references)
            guid = guid_of(stored, metadata, rule_set)
        except UnicodeEncodeError as error:
            raise refusals.invalid_schema(schema.kind, str(error)) from error
        return Candidate(subject, stored, parsed, metadata, rule_set, guid)

    def parse(self, subject: str, schema: Schema) -> ParsedSchema:
        """The parsed schema; 42201 if it is invalid."""
        key = (context_of(subject) if schema.references else "", schema)
        found = self._parsed.get(key)
        if found is not None:
            self._parsed.move_to_end(key)
            return found
        try:
            schema.text.encode()
            parsed = parse_schema(schema, self.resolve(subject, schema))
        except (SchemaError, UnicodeEncodeError) as error:
            raise refusals.invalid_schema(schema.kind, str(error)) from error
        self._keep(key, parsed)
        return parsed

    def _keep(self, key: tuple[str, Schema], parsed: ParsedSchema) -> None:
        self._parsed[key] = parsed
        self._characters += len(key[1].text)
        while len(self._parsed) > CACHED_SCHEMAS_MAX or self._characters > CACHED_CHARACTERS_MAX:
            (_, dropped), _ = self._parsed.popitem(last=False)
            self._characters -= len(dropped.text)

    def is_written_out(self, candidate: Candidate, stored: StoredSchema) -> bool:
        """Whether a schema without references is a stored one with all references expanded."""
        if (
            candidate.schema.references
            or not stored.schema.references
            or candidate.schema.kind is not SchemaKind.AVRO
            or stored.schema.kind is not SchemaKind.AVRO
        ):
            return False
        return self.parse(stored.subject, stored.schema).formatted("resolved") == (
            candidate.parsed.canonical
        )

    def resolve(self, subject: str, schema: Schema) -> dict[str, str]:
        """The text of all referenced schemas by name, each after those it refers to."""
        resolved: dict[str, str] = {}
        self._collect(subject, schema, resolved, path=())
        return resolved

    def _collect(
        self, subject: str, schema: Schema, resolved: dict[str, str], path: tuple[StoredSchema, ...]
    ) -> None:
        for reference in schema.references:
            if reference.name in resolved:
                continue
            found = self._referred(subject, schema.kind, reference)
            if found in path:
                raise refusals.invalid_schema(
                    schema.kind,
                    f'subject "{found.subject}" version {found.version} refers to itself',
                )
            if len(path) >= REFERENCE_DEPTH_MAX or len(resolved) >= REFERENCES_MAX:
                raise refusals.invalid_schema(
                    schema.kind,
                    f"more than {REFERENCES_MAX} references, or {REFERENCE_DEPTH_MAX} in a row",
                )
            self._collect(found.subject, found.schema, resolved, (*path, found))
            resolved[reference.name] = found.schema.text

    def _pinned(self, subject: str, schema: Schema) -> Schema:
        """Replace references to the latest version with its number."""
        if all(reference.version != LATEST for reference in schema.references):
            return schema
        references = tuple(
            Reference(each.name, each.subject, self._referred(subject, schema.kind, each).version)
            for each in schema.references
        )
        return Schema(schema.text, schema.kind, references)

    def _referred(self, subject: str, kind: SchemaKind, reference: Reference) -> StoredSchema:
        named = in_context_of(subject, reference.subject)
        if reference.version == LATEST:
            found = self._state.latest(named)
        else:
            found = self._state.version(named, reference.version)
        if found is None:
            raise refusals.invalid_schema(
                kind,
                f'No schema reference found for subject "{reference.subject}" and version '
                f"{reference.version}",
            )
        return found
