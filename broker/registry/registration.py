"""Registering: assigns an id and a version to a schema, or refuses it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.errors import RegistryError
from broker.registry import refusals
from broker.registry.lookup import same_schema
from broker.registry.metadata import metadata_property, with_defaults
from broker.registry.records import NUMBER_MAX, ContextRecord, Record, SchemaRecord
from broker.registry.schema_parser import Candidate, SchemaParser
from broker.registry.settings import IMPORTING, check_writable, config_for, mode_for
from broker.registry.state import RegistryState
from broker.registry.subject_names import DEFAULT_CONTEXT, context_of
from broker.registry.values import JsonObject, Mode, StoredSchema, SubjectConfig
from broker.serde.schema.compatibility.levels import CompatibilityLevel, incompatibilities
from broker.serde.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class Registration:
    """The request to register a schema; without an id or version, the registry assigns one."""

    subject: str
    schema: Schema
    normalize: bool = False
    schema_id: int | None = None
    version: int | None = None
    metadata: JsonObject | None = None
    rule_set: JsonObject | None = None


class Registrar:
    """Decides registrations and lookups; used by one thread at a time."""

    def __init__(
        self, state: RegistryState, parser: SchemaParser, default_level: CompatibilityLevel
    ) -> None:
        """The state is only read; the caller writes the returned records."""
        self._state = state
        self._parser = parser
        self._default_level = default_level

    def find(self, asked: Registration, *, deleted: bool) -> StoredSchema | None:
        """The registered version of a schema, as given or with the fields that registering adds."""
        config = self._config(asked.subject)
        found = same_schema(
            self._state, self._parser, self._candidate(asked, config), deleted=deleted
        )
        previous = self._state.latest(asked.subject)
        if found is not None or previous is None:
            return found
        filled = with_defaults(asked.metadata, asked.rule_set, config, previous)
        if filled == (asked.metadata, asked.rule_set):
            return None
        again = replace(asked, metadata=filled[0], rule_set=filled[1])
        candidate = self._candidate(again, config)
        return same_schema(self._state, self._parser, candidate, deleted=deleted)

    def known(self, asked: Registration) -> StoredSchema | None:
        """The result of registering without a write, even if writes are not allowed."""
        config = self._config(asked.subject)
        if asked.version is not None or not asked.schema.text.strip():
            return None
        if any(name.startswith(("default", "override")) for name in config.fields):
            return None
        found = self.find(asked, deleted=False)
        if found is None or asked.schema_id not in (None, found.schema_id):
            return None
        return found

    def register(self, asked: Registration) -> tuple[StoredSchema, list[Record]]:
        """The registered schema, and the records to write; none if it is already registered."""
        known = self.known(asked)
        if known is not None:
            return known, []
        state = self._state
        mode = self._checked_mode(asked)
        config = self._config(asked.subject)
        live = state.versions(asked.subject)
        everything = state.versions(asked.subject, deleted=True)
        next_version = everything[-1].version + 1 if everything else 1
        if mode not in IMPORTING:
            asked = self._filled(asked, config, live[-1] if live else None, next_version)
        candidate = self._candidate(asked, config)
        if asked.version is None:
            found = same_schema(state, self._parser, candidate, deleted=False)
            if found is not None and asked.schema_id in (None, found.schema_id):
                return found, []
        if mode not in IMPORTING:
            messages = self.incompatibilities(candidate, live, config)
            if messages:
                raise refusals.incompatible(asked.subject, messages)
        version = self._version(asked, next_version, mode)
        stored = StoredSchema(
            asked.subject,
            version,
            self._id(asked, candidate),
            candidate.guid,
            candidate.schema,
            candidate.metadata,
            candidate.rule_set,
        )
        return stored, self._records(stored, everything)

    def incompatibilities(
        self, candidate: Candidate, previous: Sequence[StoredSchema], config: SubjectConfig
    ) -> list[str]:
        """The reasons why a schema is incompatible with others (oldest first), by its level."""
        level = config.level or self._default_level
        group = config.fields.get("compatibilityGroup")
        if isinstance(group, str):
            mine = metadata_property(candidate.metadata, group)
            previous = [
                each for each in previous if metadata_property(each.metadata, group) == mine
            ]
        if level is CompatibilityLevel.NONE:
            return []
        if not level.transitive:
            previous = previous[-1:]  # the others are not used, so they are not parsed
        parsed = [self._parser.parse(each.subject, each.schema) for each in previous]
        messages = incompatibilities(level, candidate.parsed, parsed)
        if messages:
            validates = str(config.fields.get("validateFields") is True).lower()
            messages.append(f"{{validateFields: '{validates}', compatibility: '{level}'}}")
        return messages

    def check(self, asked: Registration, previous: Sequence[StoredSchema]) -> list[str]:
        """The reasons why a schema is incompatible with earlier ones, without registering it."""
        config = self._config(asked.subject)
        return self.incompatibilities(self._candidate(asked, config), previous, config)

    # --- inside -------------------------------------------------------------------------------

    def _config(self, subject: str) -> SubjectConfig:
        return config_for(self._state, subject, self._default_level)

    def _candidate(self, asked: Registration, config: SubjectConfig) -> Candidate:
        return self._parser.candidate(
            asked.subject,
            asked.schema,
            normalize=asked.normalize or config.fields.get("normalize") is True,
            metadata=asked.metadata,
            rule_set=asked.rule_set,
        )

    def _checked_mode(self, asked: Registration) -> Mode:
        check_writable(self._state, asked.subject)
        mode = mode_for(self._state, asked.subject)
        if asked.schema_id is not None:
            if not 0 <= asked.schema_id <= NUMBER_MAX:
                raise refusals.not_permitted(f"Id {asked.schema_id} is not a valid schema id")
            if mode not in IMPORTING:
                raise refusals.wrong_mode(asked.subject, "not in import mode")
        elif mode is not Mode.READWRITE:
            raise refusals.wrong_mode(asked.subject, "not in read-write mode")
        return mode

    def _filled(
        self,
        asked: Registration,
        config: SubjectConfig,
        previous: StoredSchema | None,
        next_version: int,
    ) -> Registration:
        """Fill in missing fields from the previous version and the configuration."""
        schema = asked.schema
        if not schema.text.strip():
            if previous is None:
                raise refusals.empty_schema()
            schema = previous.schema
        metadata, rule_set = with_defaults(
            asked.metadata,
            asked.rule_set,
            config,
            previous,
            version=next_version,
            number_it=asked.version is not None,
        )
        return replace(asked, schema=schema, metadata=metadata, rule_set=rule_set)

    def _version(self, asked: Registration, next_version: int, mode: Mode) -> int:
        if asked.version is None or asked.version <= 0:
            return next_version
        if asked.version > NUMBER_MAX:
            raise refusals.invalid_version(asked.version)
        if asked.version != next_version and mode not in IMPORTING:
            raise refusals.invalid_schema(
                asked.schema.kind, "Version is not one more than previous version"
            )
        return asked.version

    def _id(self, asked: Registration, candidate: Candidate) -> int:
        """The id that this schema has in the context, the requested one, or the next."""
        context = context_of(asked.subject)
        known = self._state.id_of(context, candidate.guid, candidate.schema.kind)
        if asked.schema_id is None:
            if known is None and self._state.max_id(context) >= NUMBER_MAX:
                raise RegistryError(50001, "Error while registering the schema: no id is left")
            return self._state.max_id(context) + 1 if known is None else known
        for place in self._state.places(context, asked.schema_id):
            if not candidate.is_at(place):
                raise refusals.not_permitted(
                    f"Overwrite new schema with id {asked.schema_id} in context "
                    f"{'' if context == DEFAULT_CONTEXT else f':{context}:'} is not permitted."
                )
        return asked.schema_id

    def _records(self, stored: StoredSchema, everything: list[StoredSchema]) -> list[Record]:
        records: list[Record] = []
        context = context_of(stored.subject)
        if context != DEFAULT_CONTEXT and not self._state.has_context(context):
            records.append(ContextRecord(context))
        # The id is used again: its deleted versions are no longer needed for reads by id.
        records += [
            SchemaRecord(stored.subject, each.version, None)
            for each in everything
            if each.deleted and each.schema_id == stored.schema_id and each.version < stored.version
        ]
        records.append(SchemaRecord(stored.subject, stored.version, stored))
        return records
