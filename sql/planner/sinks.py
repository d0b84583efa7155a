"""Sinks: the sources that CREATE ... AS SELECT creates, and the targets of INSERT INTO."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sql.analyse.sources import (
    SchemaSource,
    check_columns,
    check_schema_id,
    check_timestamp,
    default_format,
    with_key_name,
    wrap_setting,
)
from sql.catalog import FormatInfo, SourceInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.formats import abilities, check_format, key_wrapping, value_wrapping
from sql.planner.context import QueryOutput
from sql.properties import (
    DEFAULT_KEY_FORMAT,
    TOPIC_PREFIX,
    Settings,
    WithClause,
    check_properties,
)
from sql.syntax.statements import CreateAsSelect, SourceKind


@dataclass(frozen=True, slots=True)
class SinkPlanner:
    """Creates the source for a query's results."""

    settings: Settings
    schemas: SchemaSource

    def sink(
        self, statement: CreateAsSelect, clause: WithClause, left: SourceInfo, result: QueryOutput
    ) -> SourceInfo:
        """The sink; properties without a value are those of the left-most source."""
        self._check_kind(statement.kind, result)
        check_columns(result.schema)
        key = self._key_format(statement.name, clause, left, result)
        value = _inherited(clause.value_format, clause.value, left.value_format)
        wrapped = value_wrapping(
            value.name,
            len(result.schema.value),
            clause.wrap_single_value,
            wrap_setting(self.settings),
        )
        value = replace(value, wrapped=wrapped)
        key = replace(key, wrapped=key_wrapping(key.name, len(result.schema.key)))
        topic = clause.topic or f"{self.settings.get(TOPIC_PREFIX, '')}{statement.name}"
        for info, columns, is_key in (
            (key, result.schema.key, True),
            (value, result.schema.value, False),
        ):
            check_schema_id(info, "KEY" if is_key else "VALUE")
            check_properties(info)
            check_format(info, columns, is_key=is_key)
            self._check_schema_id(topic, info, columns, is_key=is_key)
        check_timestamp(result.schema.columns, clause.timestamp)
        return SourceInfo(
            statement.name,
            statement.kind,
            result.schema,
            topic,
            key,
            value,
            window=result.window,
            timestamp=clause.timestamp,
            partitions=clause.partitions or left.partitions,
            replicas=clause.replicas or left.replicas,
            retention_ms=clause.retention_ms or left.retention_ms,
        )

    def _check_kind(self, kind: SourceKind, result: QueryOutput) -> None:
        wanted = SourceKind.TABLE if result.is_table else SourceKind.STREAM
        if kind is not wanted:
            raise StatementFailed(
                f"Invalid result type. Your SELECT query produces a {wanted.value}. Please use "
                f"CREATE {wanted.value} AS SELECT statement instead."
            )

    def _key_format(
        self, name: str, clause: WithClause, left: SourceInfo, result: QueryOutput
    ) -> FormatInfo:
        if result.keyless:
            if clause.key_format not in (None, "NONE"):
                raise StatementFailed("Key format specified for stream without key columns.")
            return FormatInfo("NONE")
        key = _inherited(clause.key_format, clause.key, left.key_format)
        if key.name == "NONE" and clause.key_format is None and result.schema.key:
            default = default_format(self.settings, DEFAULT_KEY_FORMAT)
            assert default is not None
            key = FormatInfo(default)
        return with_key_name(key, name)

    def _check_schema_id(
        self, topic: str, info: FormatInfo, columns: Sequence[Column], *, is_key: bool
    ) -> None:
        if info.schema_id is None:
            return
        side = "KEY" if is_key else "VALUE"
        registered = self.schemas.columns(topic, info, is_key=is_key)
        if registered is None:
            raise StatementFailed(
                f"Schema for message {'keys' if is_key else 'values'} on topic '{topic}' with "
                f"schema id '{info.schema_id}' does not exist in the Schema Registry."
            )
        if is_key and len(columns) == 1 and len(registered) == 1:
            # An unwrapped key has no name in its schema.
            registered = (Column(columns[0].name, registered[0].type),)
        wrong = [
            each for n, each in enumerate(columns) if n >= len(registered) or registered[n] != each
        ]
        if wrong:
            raise StatementFailed(
                f"The following {side.lower()} columns are changed, missing or reordered: "
                f"[{_shown(wrong)}]. Schema from schema registry is [{_shown(registered)}]"
            )


def _shown(columns: Sequence[Column]) -> str:
    return ", ".join(f"`{each.name}` {each.type}" for each in columns)


def _inherited(name: str | None, given: FormatInfo, source: FormatInfo) -> FormatInfo:
    """A format with the properties of the statement, and of the source if it is equal."""
    made = replace(given, name=name or source.name)
    if made.name == source.name:
        inherited = abilities(made.name).inherited
        if "delimiter" in inherited and made.delimiter is None:
            made = replace(made, delimiter=source.delimiter)
        if "fullSchemaName" in inherited and made.full_name is None:
            made = replace(made, full_name=source.full_name)
        if "nullableRepresentation" in inherited and made.nullable is None:
            made = replace(made, nullable=source.nullable)
    return made


def check_target(target: SourceInfo, result: QueryOutput) -> None:
    """Refuse an INSERT INTO whose rows do not match the target."""
    if result.is_table:
        raise StatementFailed(
            f"Incompatible data sink and query result. Data sink ({target.name}) type is "
            "STREAM but select query result is TABLE."
        )
    if (result.schema.key, result.schema.value) != (target.schema.key, target.schema.value):
        raise StatementFailed(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {result.schema}\n"
            f"Sink schema is {target.schema}"
        )


def check_insertable(target: SourceInfo) -> None:
    """Refuse read-only targets."""
    if target.kind is SourceKind.TABLE:
        raise StatementFailed(
            f"INSERT INTO can only be used to insert into a stream. {target.name} is a table."
        )
    if target.schema.headers:
        raise StatementFailed(f"Cannot insert into {target.name} because it has header columns")
    if target.is_source:
        raise StatementFailed(f"Cannot insert into read-only stream: {target.name}")
