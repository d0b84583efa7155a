"""Registered schemas: columns that statements take from a registry, now and when replayed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.errors import MillstreamError, RegistryError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.references import resolve_references
from broker.serde.schema.parsing import parse_schema
from sql.analyse.type_names import data_type
from sql.backends.native.rows import row_options
from sql.catalog import FormatInfo, SourceInfo
from sql.datatypes import Column, Field, StructType
from sql.errors import StatementFailed
from sql.formats import abilities
from sql.parse import parse_type
from sql.rows.formats import format_of

NOT_FOUND = (40401, 40402, 40403)


def subject_of(topic: str, *, is_key: bool) -> str:
    """The subject of a topic's keys or values."""
    return f"{topic}-{'key' if is_key else 'value'}"


@dataclass(slots=True)
class StatementSchemas:
    """The registry's responses for one statement; they are logged with the command.

    A replayed statement gets the logged responses: the registry may have other schemas now.
    """

    registry: SchemaRegistry | None
    answers: dict[str, str] = field(default_factory=dict)
    logged: Mapping[str, str] = field(default_factory=dict)

    def columns(
        self, topic: str, format_: FormatInfo, *, is_key: bool
    ) -> tuple[Column, ...] | None:
        """The columns of a topic's schema, or of the format's schema id; None if there is none."""
        side = "key" if is_key else "value"
        if side in self.logged:
            return _columns_of(self.logged[side])
        result = self._registered(topic, format_, is_key=is_key)
        if result is not None:
            fields = tuple(Field(each.name, each.type) for each in result)
            self.answers[side] = str(StructType(fields))
        return result

    def _registered(
        self, topic: str, format_: FormatInfo, *, is_key: bool
    ) -> tuple[Column, ...] | None:
        if self.registry is None:
            raise StatementFailed(
                "KSQL is not configured to use a schema registry. To enable it, please set "
                "ksql.schema.registry.url"
            )
        subject = subject_of(topic, is_key=is_key)
        try:
            if format_.schema_id is None:
                schema = self.registry.version(subject).schema
            else:
                schema = self.registry.schema(format_.schema_id, subject=subject)
        except RegistryError as error:
            if error.code in NOT_FOUND:
                return None
            raise StatementFailed(
                f"Schema registry fetch for topic {'key' if is_key else 'value'} request failed. "
                f"Topic: {topic}: {error.message}"
            ) from error
        try:
            parsed = parse_schema(schema, resolve_references(self.registry, schema))
            return format_of(format_.name).columns_of(parsed, row_options(format_, is_key=is_key))
        except MillstreamError as error:
            raise StatementFailed(
                f"Unable to verify if the {'key' if is_key else 'value'} schema for topic: {topic} "
                f"is compatible with ksqlDB.\nReason: {error.message}"
            ) from error


def _columns_of(text: str) -> tuple[Column, ...]:
    found = data_type(parse_type(text), {})
    assert isinstance(found, StructType), "columns are logged as a struct"
    return tuple(Column(each.name, each.type) for each in found.fields)


def register_schemas(info: SourceInfo, registry: SchemaRegistry | None) -> None:
    """Register the schemas of a source's keys and values, unless the topic already has some."""
    for format_, columns, is_key in (
        (info.key_format, info.schema.key, True),
        (info.value_format, info.schema.value, False),
    ):
        if not columns or not abilities(format_.name).inferred or format_.schema_id is not None:
            continue
        if registry is None:
            raise StatementFailed(
                f"Cannot create {info.shown_kind} '{info.name}': format {format_.name} needs a "
                "schema registry, and none is configured. To enable it, please set "
                "ksql.schema.registry.url"
            )
        subject = subject_of(info.topic, is_key=is_key)
        try:
            if _has_subject(registry, subject):
                continue
            options = row_options(format_, is_key=is_key)
            registry.register(subject, format_of(format_.name).schema_of(columns, options))
        except MillstreamError as error:
            raise StatementFailed(
                f"Could not register schema for topic {info.topic}: {error.message}"
            ) from error


def _has_subject(registry: SchemaRegistry, subject: str) -> bool:
    try:
        registry.version(subject)
    except RegistryError as error:
        if error.code in NOT_FOUND:
            return False
        raise
    return True
