"""HeaderFrom: copies or moves fields to headers."""

from collections.abc import Mapping
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import (
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyList,
    ValidString,
)
from connect.data import ConnectSchema, Field, Struct
from connect.errors import ConfigError, DataError
from connect.records import Header, Record
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    field_values,
    plain_struct,
    require_map,
    require_struct,
    with_replace_null,
)


class HeaderFrom(Transformation):
    """Copies or moves fields of a key or value to headers."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        definition = (
            ConfigDef()
            .define(
                "fields",
                ConfigType.LIST,
                validator=NonEmptyList(),
                importance=Importance.HIGH,
                doc="The fields to copy or move to headers, separated by commas.",
            )
            .define(
                "headers",
                ConfigType.LIST,
                validator=NonEmptyList(),
                importance=Importance.HIGH,
                doc="The names of the headers, in the order of the fields.",
            )
            .define(
                "operation",
                ConfigType.STRING,
                validator=ValidString("move", "copy"),
                importance=Importance.HIGH,
                doc="copy keeps the fields, move removes them.",
            )
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        fields, headers = settings.strings("fields"), settings.strings("headers")
        if len(fields) != len(headers):
            raise ConfigError(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._pairs = list(zip(fields, headers, strict=True))
        self._moves = settings.text("operation") == "move"
        self._purpose = f"header {settings.text('operation')}"
        self._replace_null = settings.boolean("replace.null.with.default")
        self._moved = SchemaPlans(self._without_fields)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if schema is None:
            mapping = require_map(value, self._purpose)
            added = [Header(name, None, mapping.get(field)) for field, name in self._pairs]
            if self._moves:
                taken = {field for field, _ in self._pairs}
                mapping = {name: each for name, each in mapping.items() if name not in taken}
            changed = self.part.put(record, None, mapping)
            return changed.changed(headers=[*record.headers, *added])
        struct = require_struct(value, self._purpose)
        values = field_values(struct, replace_null=self._replace_null)
        added = [self._header(struct.schema, values, field, name) for field, name in self._pairs]
        if self._moves:
            schema, positions = self._moved.of(struct.schema)
            struct = Struct(schema, [values[position] for position in positions])
        return self.part.put(record, schema, struct).changed(headers=[*record.headers, *added])

    def _header(self, schema: ConnectSchema, values: list[object], field: str, name: str) -> Header:
        position = schema.positions.get(field)
        if position is None:
            names = ", ".join(schema.positions)
            raise DataError(f"Unknown field: {field}", hint=f"the fields are {names}")
        return Header(name, schema.fields[position].schema, values[position])

    def _without_fields(self, schema: ConnectSchema) -> tuple[ConnectSchema, tuple[int, ...]]:
        taken = {field for field, _ in self._pairs}
        kept: list[Field] = [field for field in schema.fields if field.name not in taken]
        positions = tuple(schema.positions[field.name] for field in kept)
        return plain_struct(schema, tuple(kept)), positions


class HeaderFromKey(HeaderFrom):
    """HeaderFrom of the key."""

    part = KEY


class HeaderFromValue(HeaderFrom):
    """HeaderFrom of the value."""

    part = VALUE
