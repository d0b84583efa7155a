"""INSERT INTO ... VALUES: evaluates the expressions and creates the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from broker.errors import MillstreamError
from broker.serde import Serde
from broker.serde.registry.api import SchemaRegistry
from sql.analyse.expression_text import expression_text
from sql.analyse.expressions import ExpressionAnalyser
from sql.analyse.insertion import insertion_columns, insertion_target
from sql.analyse.scope import Columns
from sql.backends.native.evaluating import row_function
from sql.backends.native.rows import key_serde, value_serde
from sql.catalog import Catalog, SourceInfo
from sql.datatypes import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from sql.engine.settings import SqlConfig
from sql.engine.topic_rules import matches_any
from sql.errors import SqlError, StatementFailed
from sql.expressions import Constant, Convert, TypedExpression
from sql.functions.registry import FunctionRegistry
from sql.numeric_types import fit_decimal
from sql.rows.row_format import Row
from sql.schema import ROWTIME
from sql.syntax.expressions import Expression
from sql.syntax.statements import InsertValues, SourceKind

ENABLED = "ksql.insert.into.values.enabled"
READ_ONLY = "ksql.readonly.topics"
ENCODERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class InsertedRecord:
    """A record to write."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


class RowEncoders:
    """The serdes of sources, created once per source. Thread-safe."""

    def __init__(self, registry: SchemaRegistry | None) -> None:
        self._registry = registry
        self._made: dict[SourceInfo, tuple[Serde[Row], Serde[Row]]] = {}

    def of(self, source: SourceInfo) -> tuple[Serde[Row], Serde[Row]]:
        """The serdes of a source's keys and values."""
        result = self._made.get(source)
        if result is None:
            if len(self._made) >= ENCODERS_MAX:
                self._made.clear()
            schema, registry = source.schema, self._registry
            result = (
                key_serde(source.key_format, schema.key, registry),
                value_serde(source.value_format, schema.value, registry),
            )
            self._made[source] = result
        return result


@dataclass(frozen=True, slots=True)
class RecordBuilder:
    """Creates the records of INSERT statements."""

    catalog: Catalog
    functions: FunctionRegistry
    config: SqlConfig
    registry: SchemaRegistry | None
    encoders: RowEncoders | None = None

    def record(self, statement: InsertValues, now_ms: int) -> InsertedRecord:
        """The record of a statement; StatementFailed if it is invalid."""
        source = self._target(statement)
        if not self.config.flag(ENABLED):
            raise StatementFailed(
                "The server has disabled INSERT INTO ... VALUES functionality. To enable it, "
                f"restart your ksqlDB server with '{ENABLED}'=true"
            )
        try:
            values = self._values(statement, source)
            return self.encoded(source, values, now_ms)
        except MillstreamError as error:
            raise StatementFailed(
                f"Failed to insert values into '{source.name}'. {error.message}", hint=error.hint
            ) from error

    def target(self, name: str) -> SourceInfo:
        """The source with a name, if values may be inserted into it."""
        return self._target(InsertValues(name, (), ()))

    def _target(self, statement: InsertValues) -> SourceInfo:
        source = insertion_target(statement, self.catalog)
        if matches_any(source.topic, self.config.text(READ_ONLY)):
            raise StatementFailed(f"Cannot insert values into read-only topic: {source.topic}")
        return source

    def _values(self, statement: InsertValues, source: SourceInfo) -> dict[str, object]:
        columns = insertion_columns(statement, source)
        names = [each.name for each in columns]
        return dict(zip(names, self._evaluated(statement.values, columns), strict=True))

    def _evaluated(
        self, expressions: Sequence[Expression], columns: Sequence[Column]
    ) -> list[object]:
        analyser = ExpressionAnalyser(Columns(()), self.functions, self.catalog.types)
        result = []
        for expression, column in zip(expressions, columns, strict=True):
            typed = analyser.typed(expression)
            value = constant_value(typed)
            try:
                result.append(coerced(value, typed.type, column.type))
            except (NotCoercible, MillstreamError) as error:
                kind = "null" if typed.type is None else typed.type
                shown = value if isinstance(value, str) else expression_text(expression)
                raise StatementFailed(
                    f"Expected type {column.type} for field `{column.name}` but got {kind}({shown})"
                ) from error
        return result

    def encoded(
        self, source: SourceInfo, values: Mapping[str, object], now_ms: int
    ) -> InsertedRecord:
        """The record of a row of values by name; missing columns are null."""
        schema, topic = source.schema, source.topic
        if source.kind is SourceKind.TABLE:
            missing = [each.name for each in schema.key if values.get(each.name) is None]
            if missing:
                raise StatementFailed(
                    f"Value for primary key column(s) {', '.join(missing)} is required for tables"
                )
        time_ms = values.get(ROWTIME.name)
        key = tuple(values.get(each.name) for each in schema.key)
        value = tuple(values.get(each.name) for each in schema.value)
        encoders = self.encoders or RowEncoders(self.registry)
        keys, rows = encoders.of(source)
        present = any(each is not None for each in key)
        key_bytes = keys.serialize(topic, key) if present else None
        value_bytes = rows.serialize(topic, value)
        return InsertedRecord(
            topic, key_bytes, value_bytes, now_ms if time_ms is None else cast("int", time_ms)
        )


class NotCoercible(SqlError):
    """A value that needs a CAST to another type."""

    def __init__(self) -> None:
        super().__init__("the value has another type")


def constant_value(typed: TypedExpression) -> object:
    """The value of an expression without columns; StatementFailed if it fails."""
    if isinstance(typed, Constant):
        return typed.value
    failures: list[Exception] = []
    found = row_function([typed], lambda error, row: failures.append(error))(())
    if failures:
        raise StatementFailed(f"Failed to evaluate expression: {failures[0]}") from failures[0]
    return found[0]


def coerced(value: object, given: DataType | None, wanted: DataType) -> object:
    """A value converted to another type, if that needs no CAST; otherwise NotCoercible."""
    if value is None or given is None or given == wanted:
        return value
    match given, wanted:
        case ArrayType(element=inner), ArrayType(element=outer):
            return [coerced(each, inner, outer) for each in cast("list[object]", value)]
        case MapType(), MapType():
            return {
                coerced(key, given.key, wanted.key): coerced(each, given.value, wanted.value)
                for key, each in cast("dict[object, object]", value).items()
            }
        case StructType(), StructType():
            return _coerced_struct(cast("dict[str, object]", value), given, wanted)
        case _:
            return _coerced_single(value, given, wanted)


def _coerced_struct(
    value: Mapping[str, object], given: StructType, wanted: StructType
) -> dict[str, object]:
    types = {each.name: each.type for each in given.fields}
    return {
        each.name: coerced(value.get(each.name), types.get(each.name), each.type)
        for each in wanted.fields
    }


def _coerced_single(value: object, given: DataType, wanted: DataType) -> object:
    exact = given in (INT, BIGINT) or isinstance(given, DecimalType)
    if given is INT and wanted is BIGINT:
        return value
    if exact and wanted is DOUBLE:
        return float(cast("int | Decimal", value))
    if exact and isinstance(wanted, DecimalType):
        try:
            return fit_decimal(Decimal(cast("int | Decimal", value)), wanted)
        except ValueError as error:
            raise NotCoercible from error
    if given is STRING and wanted in (TIME, DATE, TIMESTAMP, BYTES):
        return constant_value(Convert(Constant(value, STRING), wanted))
    raise NotCoercible
