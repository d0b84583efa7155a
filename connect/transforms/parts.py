"""Shared code of transforms: the key or value of a record, its fields, and error checks."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from connect.config_def import ConfigDef, ConfigType, Importance
from connect.data import ConnectSchema, Field, Struct, Type
from connect.errors import DataError
from connect.records import Record, SinkRecord

Plan = TypeVar("Plan")

# Enough for the schemas of one topic at a time; plans are small.
PLANS_MAX = 64


class Part(NamedTuple):
    """The key or the value of records."""

    get: Callable[[Record], tuple[ConnectSchema | None, object]]
    put: Callable[[Record, ConnectSchema | None, object], Record]


KEY = Part(
    lambda record: (record.key_schema, record.key),
    lambda record, schema, value: record.changed(key_schema=schema, key=value),
)
VALUE = Part(
    lambda record: (record.value_schema, record.value),
    lambda record, schema, value: record.changed(value_schema=schema, value=value),
)


class SchemaPlans(Generic[Plan]):
    """The operations of a transform on records of a schema, computed once per schema."""

    def __init__(self, make: Callable[[ConnectSchema], Plan]) -> None:
        self._make = make
        self._plans: dict[ConnectSchema, Plan] = {}

    def of(self, schema: ConnectSchema) -> Plan:
        """The plan for a schema."""
        plan = self._plans.get(schema)
        if plan is None:
            plan = self._make(schema)
            if len(self._plans) >= PLANS_MAX:
                del self._plans[next(iter(self._plans))]
            self._plans[schema] = plan
        return plan


def with_replace_null(definition: ConfigDef) -> ConfigDef:
    """Add the setting replace.null.with.default."""
    return definition.define(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        True,
        importance=Importance.MEDIUM,
        doc="Whether a null field is replaced with the default value of its schema.",
    )


def field_values(struct: Struct, *, replace_null: bool) -> list[object]:
    """The values of a struct's fields, which must not be modified; optionally with defaults."""
    defaults = _defaults(struct.schema)
    if not defaults:
        return struct.values
    values = struct.values.copy()
    for position, field in defaults:
        if values[position] is None:
            if replace_null:
                values[position] = field.schema.default
            else:
                ensure_not_null(field, None)
    return values


@lru_cache(maxsize=256)
def _defaults(schema: ConnectSchema) -> tuple[tuple[int, Field], ...]:
    fields = enumerate(schema.fields)
    return tuple((at, field) for at, field in fields if field.schema.default is not None)


def ensure_not_null(field: Field, value: object) -> None:
    """Raise DataError if a required field is null."""
    if value is None and not field.schema.optional:
        raise DataError(
            f'Invalid value: null used for required field: "{field.name}", '
            f"schema type: {field.schema.type.name}"
        )


def plain_struct(schema: ConnectSchema, fields: tuple[Field, ...]) -> ConnectSchema:
    """A required struct of other fields, with the name, version, doc and parameters of a schema."""
    return ConnectSchema(
        Type.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=fields,
    )


def require_map(value: object, purpose: str) -> dict[str, object]:
    """The value as a dict; DataError if it is not one."""
    if isinstance(value, dict):
        return value
    raise DataError(
        f"Only Map objects supported in absence of schema for [{purpose}], "
        f"found: {java_class(value)}"
    )


def require_struct(value: object, purpose: str) -> Struct:
    """The value as a struct; DataError if it is not one."""
    if isinstance(value, Struct):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {java_class(value)}")


def require_sink_record(record: Record, purpose: str) -> SinkRecord:
    """The record as a sink record; DataError if it is not one."""
    if isinstance(record, SinkRecord):
        return record
    found = "org.apache.kafka.connect.source.SourceRecord"
    raise DataError(f"Only SinkRecord supported for [{purpose}], found: {found}")


_JAVA_CLASSES: dict[type, str] = {
    type(None): "null",
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    float: "java.lang.Double",
    str: "java.lang.String",
    bytes: "[B",
    bytearray: "[B",
    memoryview: "[B",
    list: "java.util.ArrayList",
    dict: "java.util.LinkedHashMap",
    Struct: "org.apache.kafka.connect.data.Struct",
    Decimal: "java.math.BigDecimal",
    datetime.datetime: "java.util.Date",
    datetime.date: "java.util.Date",
    datetime.time: "java.util.Date",
}


def java_class(value: object) -> str:
    """The Java class of a value in Kafka Connect, for error messages."""
    return _JAVA_CLASSES.get(type(value), type(value).__qualname__)
