"""MaskField: replaces the values of fields."""

import datetime
from collections.abc import Mapping
from ctypes import c_float
from decimal import Decimal
from typing import ClassVar

from broker.java.number_text import DECIMAL
from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance, NonEmptyString, ValidList
from connect.data import ConnectSchema, Struct, Type
from connect.errors import DataError
from connect.records import Record
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    field_values,
    java_class,
    require_map,
    require_struct,
    with_replace_null,
)

PURPOSE = "mask fields"
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32}
_EMPTY: dict[type, object] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    Decimal: Decimal(0),
    datetime.datetime: datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
    datetime.date: datetime.date(1970, 1, 1),
    datetime.time: datetime.time(),
}


class MaskField(Transformation):
    """Sets fields to the empty value of their type, or to a configured value."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        definition = ConfigDef().define(
            "fields",
            ConfigType.LIST,
            validator=ValidList(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The fields to mask, separated by commas.",
        )
        definition.define(
            "replacement",
            ConfigType.STRING,
            None,
            validator=NonEmptyString(),
            importance=Importance.LOW,
            doc="The replacement value, a string or, for numeric fields, a number. The "
            "default is the empty value of the field's type.",
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._fields = settings.strings("fields")
        self._replacement = settings.text_or_none("replacement")
        self._replace_null = settings.boolean("replace.null.with.default")
        self._plans = SchemaPlans(self._masked_positions)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if schema is None:
            mapping = require_map(value, PURPOSE)
            masked = {name: self._masked(mapping.get(name), Type.INT64) for name in self._fields}
            return self.part.put(record, None, {**mapping, **masked})
        struct = require_struct(value, PURPOSE)
        values = field_values(struct, replace_null=self._replace_null).copy()
        for position, type_ in self._plans.of(struct.schema):
            values[position] = self._masked(values[position], type_)
        return self.part.put(record, schema, Struct(struct.schema, values))

    def _masked_positions(self, schema: ConnectSchema) -> tuple[tuple[int, Type], ...]:
        return tuple(
            (position, field.schema.type)
            for position, field in enumerate(schema.fields)
            if field.name in self._fields
        )

    def _masked(self, value: object, type_: Type) -> object:
        if value is None:
            return None
        if self._replacement is not None:
            return _replaced(value, self._replacement, type_)
        if isinstance(value, list):
            return []
        if isinstance(value, dict):
            return {}
        if type(value) not in _EMPTY:
            raise DataError(f"Cannot mask value of type: class {java_class(value)}")
        return _EMPTY[type(value)]


def _replaced(value: object, replacement: str, type_: Type) -> object:
    match value:
        case str():
            return replacement
        case bool():
            pass
        case int():
            bound = 1 << (_BITS.get(type_, 64) - 1)
            whole = int(_number(replacement, "a number"))
            return (whole + bound) % (2 * bound) - bound
        case float():
            number = float(_number(replacement, "a number"))
            return c_float(number).value if type_ is Type.FLOAT32 else number
        case Decimal():
            return _number(replacement, "number")
    raise DataError(f"Cannot mask value of type class {java_class(value)} with custom replacement.")


def _number(text: str, what: str) -> Decimal:
    if DECIMAL.fullmatch(text) is None:
        raise DataError(f"Unable to convert {text} (class java.lang.String) to {what}")
    return Decimal(text)


class MaskFieldKey(MaskField):
    """MaskField of the key."""

    part = KEY


class MaskFieldValue(MaskField):
    """MaskField of the value."""

    part = VALUE
