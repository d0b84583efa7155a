"""CREATE STREAM and CREATE TABLE: a SourceInfo from a statement and registered schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sql.analyse.expression_text import name_text
from sql.analyse.replacement import check_replacement
from sql.analyse.type_names import data_type
from sql.catalog import Catalog, FormatInfo, SourceInfo, TimestampColumn
from sql.datatypes import BIGINT, BYTES, STRING, TIMESTAMP, Column, DataType
from sql.errors import StatementFailed
from sql.formats import abilities, check_format, key_wrapping, value_wrapping
from sql.properties import (
    DEFAULT_KEY_FORMAT,
    DEFAULT_VALUE_FORMAT,
    WRAP_SINGLE_VALUES,
    Settings,
    WithClause,
    check_properties,
    read_source_properties,
)
from sql.schema import HEADERS_TYPE, RESERVED_NAMES, HeaderColumn, Schema
from sql.syntax.statements import ColumnDefinition, ColumnRole, CreateSource, SourceKind

AVRO_NAMESPACE = "io.confluent.ksql.avro_schemas"
KEY_ROLES = (ColumnRole.KEY, ColumnRole.PRIMARY_KEY)


class SchemaSource(Protocol):
    """Looks up the columns of registered schemas."""

    def columns(
        self, topic: str, format_: FormatInfo, *, is_key: bool
    ) -> tuple[Column, ...] | None:
        """The columns of a topic's schema, or of the format's schema id; None if there is none.

        A schema that is not a record becomes a single column, ROWKEY or ROWVAL.
        """
        ...


@dataclass(slots=True)
class NoSchemas:
    """An empty registry."""

    def columns(
        self, topic: str, format_: FormatInfo, *, is_key: bool
    ) -> tuple[Column, ...] | None:
        """Always None."""
        return None


@dataclass(slots=True)
class SourceAnalyser:
    """Creates sources from statements; the catalog is not changed."""

    catalog: Catalog
    settings: Settings
    schemas: SchemaSource

    def create(self, statement: CreateSource, text: str = "") -> SourceInfo | None:
        """The source that a statement creates; None if it exists, with IF NOT EXISTS."""
        existing = self.catalog.sources.get(statement.name)
        check_replaceable(existing, statement)
        if existing is not None and statement.if_not_exists:
            return None
        clause = read_source_properties(statement.properties)
        if clause.topic is None:
            raise StatementFailed(
                'Failed to prepare statement: Missing required property "KAFKA_TOPIC" which has '
                "no default value."
            )
        key, value = self._formats(statement, clause)
        schema, key, value = self._schema(statement, clause, key, value)
        check_timestamp(schema.columns, clause.timestamp)
        made = self._info(statement, clause, schema, (key, value), text)
        if existing is not None:
            check_replacement(existing, made)
        return made

    def _formats(
        self, statement: CreateSource, clause: WithClause
    ) -> tuple[FormatInfo, FormatInfo]:
        key_name = clause.key_format or default_format(self.settings, DEFAULT_KEY_FORMAT)
        value_name = clause.value_format or default_format(self.settings, DEFAULT_VALUE_FORMAT)
        for name, property_, setting in (
            (key_name, "KEY_FORMAT", DEFAULT_KEY_FORMAT),
            (value_name, "VALUE_FORMAT", DEFAULT_VALUE_FORMAT),
        ):
            if name is None:
                raise StatementFailed(
                    f"Statement is missing the '{property_}' property from the WITH clause. "
                    f"Either provide one or set a default via the '{setting}' config."
                )
        assert key_name is not None
        assert value_name is not None
        key, value = replace(clause.key, name=key_name), replace(clause.value, name=value_name)
        check_schema_id(key, "KEY")
        check_schema_id(value, "VALUE")
        check_properties(key)
        check_properties(value)
        return with_key_name(key, statement.name), value

    def _schema(
        self, statement: CreateSource, clause: WithClause, key: FormatInfo, value: FormatInfo
    ) -> tuple[Schema, FormatInfo, FormatInfo]:
        """The declared or registered columns, and the formats, which depend on their number."""
        check_names(statement.columns)
        schema = definitions_schema(statement.columns, self.catalog.types)
        default_wrap = wrap_setting(self.settings)
        topic = clause.topic or ""
        keys, values = schema.key, schema.value
        if self._inferred(schema.key, key, "KEY"):
            keys = self._registered(topic, replace(key, wrapped=False), "keys")
        if self._inferred(schema.value, value, "VALUE"):
            wrapped = clause.wrap_single_value is not False
            values = self._registered(topic, replace(value, wrapped=wrapped), "values")
        if not keys and not values and not schema.headers:
            raise StatementFailed("No columns supplied.")
        schema = replace(schema, key=keys, value=values)
        check_columns(schema)
        key = replace(key, wrapped=key_wrapping(key.name, len(keys)))
        wrap = value_wrapping(value.name, len(values), clause.wrap_single_value, default_wrap)
        value = replace(value, wrapped=wrap)
        if statement.kind is SourceKind.TABLE and not keys:
            raise StatementFailed("Tables require a PRIMARY KEY. Please define the PRIMARY KEY.")
        if clause.window is not None and not keys:
            raise StatementFailed("Windowed sources require a key column.")
        check_format(key, keys, is_key=True)
        check_format(value, values, is_key=False)
        return schema, key, value

    def _inferred(self, written: Sequence[Column], info: FormatInfo, side: str) -> bool:
        if info.schema_id is not None:
            if written:
                raise StatementFailed(
                    f"Table elements and {side}_SCHEMA_ID cannot both exist for create statement."
                )
            return True
        return not written and abilities(info.name).inferred

    def _registered(self, topic: str, info: FormatInfo, what: str) -> tuple[Column, ...]:
        result = self.schemas.columns(topic, info, is_key=what == "keys")
        if result is None:
            which = "" if info.schema_id is None else f" with schema id '{info.schema_id}'"
            raise StatementFailed(
                f"Schema for message {what} on topic '{topic}'{which} does not exist in the "
                "Schema Registry.",
                hint="name the columns in the statement, or register the schema first",
            )
        return result

    def _info(
        self,
        statement: CreateSource,
        clause: WithClause,
        schema: Schema,
        formats: tuple[FormatInfo, FormatInfo],
        text: str,
    ) -> SourceInfo:
        return SourceInfo(
            statement.name,
            statement.kind,
            schema,
            clause.topic or "",
            formats[0],
            formats[1],
            window=clause.window,
            timestamp=clause.timestamp,
            is_source=statement.is_source,
            statement=text,
            partitions=clause.partitions,
            replicas=clause.replicas,
            retention_ms=clause.retention_ms,
        )


def default_format(settings: Settings, name: str) -> str | None:
    """A format from the settings; the default for keys is KAFKA."""
    found = settings.get(name, "KAFKA" if name == DEFAULT_KEY_FORMAT else None)
    if found is None:
        return None
    abilities(str(found).upper())
    return str(found).upper()


def check_schema_id(info: FormatInfo, side: str) -> None:
    """Refuse a schema id for formats without schemas."""
    if info.schema_id is not None and not abilities(info.name).inferred:
        raise StatementFailed(
            f"{side}_FORMAT should support schema inference when {side}_SCHEMA_ID is provided. "
            f"Current format is {info.name}."
        )


def wrap_setting(settings: Settings) -> bool | None:
    """The setting for wrapping single value columns."""
    found = settings.get(WRAP_SINGLE_VALUES)
    return None if found is None or found == "" else str(found).lower() == "true"


def with_key_name(key: FormatInfo, source: str) -> FormatInfo:
    """The name of a source's key schema in Avro, which must differ from that of its values."""
    if key.name != "AVRO" or key.full_name is not None:
        return key
    camel = "".join(each[:1].upper() + each[1:].lower() for each in source.split("_"))
    return replace(key, full_name=f"{AVRO_NAMESPACE}.{camel}Key")


def check_replaceable(existing: SourceInfo | None, statement: CreateSource) -> None:
    """Refuse a name that exists, and replacements of read-only sources."""
    kind = statement.kind.value.lower()
    read_only = statement.is_source or (existing is not None and existing.is_source)
    if statement.or_replace and read_only:
        raise StatementFailed(
            f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on source "
            f"{kind}s."
        )
    if existing is not None and not statement.or_replace and not statement.if_not_exists:
        raise StatementFailed(
            f"Cannot add {kind} '{statement.name}': A {existing.shown_kind} with the same name "
            "already exists"
        )


def check_names(definitions: Sequence[ColumnDefinition]) -> None:
    """Refuse the names of pseudo columns."""
    for each in definitions:
        if each.name in RESERVED_NAMES:
            raise StatementFailed(
                f"'{each.name}' is a reserved column name. You cannot use it as a name for a "
                "column."
            )


def definitions_schema(
    definitions: Sequence[ColumnDefinition], types: Mapping[str, DataType]
) -> Schema:
    """The columns that a statement declares."""
    keys: list[Column] = []
    values: list[Column] = []
    headers: list[HeaderColumn] = []
    seen: set[str] = set()
    for each in sorted(definitions, key=lambda each: each.role not in KEY_ROLES):
        if each.name in seen:
            raise StatementFailed(f"Duplicate column names: {name_text(each.name)}")
        seen.add(each.name)
        type_ = data_type(each.type, types)
        if each.role in KEY_ROLES:
            keys.append(Column(each.name, type_))
        elif each.role is ColumnRole.VALUE:
            values.append(Column(each.name, type_))
        else:
            place = len(keys) + len(values) + len(headers)
            headers.append(replace(_header(each, type_, headers), place=place))
    return Schema(tuple(keys), tuple(values), tuple(headers))


def _header(
    definition: ColumnDefinition, type_: DataType, before: Sequence[HeaderColumn]
) -> HeaderColumn:
    wanted = HEADERS_TYPE if definition.role is ColumnRole.HEADERS else BYTES
    made = HeaderColumn(definition.name, type_, definition.header)
    if type_ != wanted:
        raise StatementFailed(
            f"Invalid type for {made.role} column: expected {wanted}, got {type_}"
        )
    for each in before:
        if each.key is None or made.key is None:
            raise StatementFailed("Schema already contains a HEADERS column.")
        if each.key == made.key:
            raise StatementFailed(f"Schema already contains a {made.role} column.")
    return made


def check_columns(schema: Schema) -> None:
    """Refuse duplicate names of columns."""
    for kind, columns in (("key", schema.key), ("value", schema.value)):
        seen: set[str] = set()
        for each in columns:
            if each.name in seen:
                suffix = " KEY" if kind == "key" else ""
                raise StatementFailed(
                    f"Duplicate {kind} columns found in schema: `{each.name}` {each.type}{suffix}"
                )
            seen.add(each.name)


def check_timestamp(columns: Sequence[Column], timestamp: TimestampColumn | None) -> None:
    """Refuse an invalid TIMESTAMP column."""
    if timestamp is None:
        return
    found = next((each for each in columns if each.name == timestamp.name), None)
    if found is None:
        raise StatementFailed(
            "The TIMESTAMP column set in the WITH clause does not exist in the schema: "
            f"'{timestamp.name}'"
        )
    if found.type is STRING:
        if timestamp.pattern is None:
            raise StatementFailed(
                f"A String timestamp field has been specified without also specifying the "
                f"timestamp_format: `{timestamp.name}`"
            )
    elif timestamp.pattern is not None:
        raise StatementFailed(
            f"'TIMESTAMP_FORMAT' set, but TIMESTAMP column `{timestamp.name}` is of type "
            f"{found.type}; it can only be used when the timestamp column is of type STRING"
        )
    elif found.type not in (BIGINT, TIMESTAMP):
        raise StatementFailed(
            f"Timestamp column, `{timestamp.name}`, should be LONG(INT64), TIMESTAMP, or a String "
            "with a timestamp_format specified"
        )
