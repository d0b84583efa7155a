"""Flatten: nested fields become top-level fields, with joined names."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance
from connect.data import ConnectSchema, Field, Struct, Type
from connect.errors import DataError
from connect.records import Record
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    java_class,
    plain_struct,
    require_map,
    require_struct,
)

PURPOSE = "flattening"
# Without a schema, values of these types are kept.
_LEAVES = (bool, int, float, str, bytes, bytearray, memoryview, list)

# Reads the values of a struct, and adds those of the flattened struct to the list.
_Read = Callable[[Struct | None, list[object]], None]


class Flatten(Transformation):
    """Flattens nested structs or dicts."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef().define(
            "delimiter",
            ConfigType.STRING,
            ".",
            importance=Importance.MEDIUM,
            doc="The separator between the name of a field and the name of a nested field.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        self._delimiter = self.config().parse(config).text("delimiter")
        self._plans = SchemaPlans(self._plan)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, object] = {}
            self._flatten_map(require_map(value, PURPOSE), "", flat)
            return self.part.put(record, None, flat)
        flat_schema, read = self._plans.of(schema)
        values: list[object] = []
        read(require_struct(value, PURPOSE), values)
        return self.part.put(record, flat_schema, Struct(flat_schema, values))

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _flatten_map(
        self, mapping: Mapping[str, object], prefix: str, flat: dict[str, object]
    ) -> None:
        for name, value in mapping.items():
            path = self._name(prefix, name)
            if isinstance(value, dict):
                self._flatten_map(value, path, flat)
            elif value is None or isinstance(value, _LEAVES):
                flat[path] = value
            elif isinstance(value, Struct):
                raise DataError(
                    f"Flatten transformation does not support class {java_class(value)} for "
                    f"record without schemas (for field {path})."
                )
            else:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(value)} "
                    "which is not supported by Connect's data API"
                )

    def _plan(self, schema: ConnectSchema) -> tuple[ConnectSchema, _Read]:
        fields: list[Field] = []
        default = schema.default if isinstance(schema.default, Struct) else None
        read = self._flatten_schema(schema, "", fields, schema.optional, default)
        return plain_struct(schema, tuple(fields)), read

    def _flatten_schema(
        self,
        schema: ConnectSchema,
        prefix: str,
        flat: list[Field],
        optional: bool,
        parent_default: Struct | None,
    ) -> _Read:
        """Add the flattened fields; returns the function that reads their values from a struct."""
        readers: list[_Read] = []
        for field in schema.fields:
            path = self._name(prefix, field.name)
            may_be_null = optional or field.schema.optional
            default = field.schema.default
            if default is None and parent_default is not None:
                default = parent_default[field.name]
            if field.schema.type is Type.STRUCT:
                inner_default = default if isinstance(default, Struct) else None
                inner = self._flatten_schema(field.schema, path, flat, may_be_null, inner_default)
                readers.append(_inner_reader(field.name, inner))
            elif field.schema.type is Type.MAP:
                raise DataError(
                    "Flatten transformation does not support MAP for record with schemas "
                    f"(for field {path})."
                )
            else:
                made = field.schema.with_(optional=may_be_null, default=default)
                flat.append(Field(path, made))
                readers.append(_leaf_reader(field.name))
        return _reader(readers)


def _reader(readers: list[_Read]) -> _Read:
    def read(struct: Struct | None, values: list[object]) -> None:
        for each in readers:
            each(struct, values)

    return read


def _leaf_reader(name: str) -> _Read:
    def read(struct: Struct | None, values: list[object]) -> None:
        values.append(None if struct is None else struct[name])

    return read


def _inner_reader(name: str, inner: _Read) -> _Read:
    def read(struct: Struct | None, values: list[object]) -> None:
        # Kafka does not look at the default of a struct inside, only at those of its fields.
        value = None if struct is None else struct.get(name, with_default=False)
        inner(value if isinstance(value, Struct) else None, values)

    return read


class FlattenKey(Flatten):
    """Flatten of the key."""

    part = KEY


class FlattenValue(Flatten):
    """Flatten of the value."""

    part = VALUE
