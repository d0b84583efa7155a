"""ReplaceField: removes and renames fields."""

from collections.abc import Mapping
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import Check, ConfigDef, ConfigType, Importance, ValidList, invalid
from connect.data import ConnectSchema, Field, Struct
from connect.errors import DataError
from connect.records import Record
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

PURPOSE = "field replacement"


def _parse_renames(mappings: list[str]) -> dict[str, str]:
    renames: dict[str, str] = {}
    for mapping in mappings:
        parts = mapping.rstrip(":").split(":")
        if len(parts) != 2:
            raise invalid("renames", mappings, f"Invalid rename mapping: {mapping}")
        renames[parts[0]] = parts[1]
    return renames


def _ensure_renames(name: str, value: object) -> None:
    assert isinstance(value, list), "renames is a list"
    _parse_renames(value)


class ReplaceField(Transformation):
    """Removes fields, or keeps only some, and renames fields."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        definition = (
            ConfigDef()
            .define(
                "exclude",
                ConfigType.LIST,
                [],
                validator=ValidList(),
                importance=Importance.MEDIUM,
                doc="The fields to remove; this overrides include.",
            )
            .define(
                "include",
                ConfigType.LIST,
                [],
                validator=ValidList(),
                importance=Importance.MEDIUM,
                doc="The fields to keep. The default is all fields.",
            )
            .define(
                "renames",
                ConfigType.LIST,
                [],
                validator=Check(
                    _ensure_renames,
                    "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>",
                ),
                importance=Importance.MEDIUM,
                doc="old:new for each field to rename, separated by commas.",
            )
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._exclude = frozenset(settings.strings("exclude"))
        self._include = frozenset(settings.strings("include"))
        self._renames = _parse_renames(settings.strings("renames"))
        self._sources = {new: old for old, new in self._renames.items()}
        self._replace_null = settings.boolean("replace.null.with.default")
        self._plans = SchemaPlans(self._plan)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if value is None:
            return record
        if schema is None:
            mapping = require_map(value, PURPOSE)
            kept = {
                self._renames.get(name, name): each
                for name, each in mapping.items()
                if self._keeps(name)
            }
            return self.part.put(record, None, kept)
        struct = require_struct(value, PURPOSE)
        made, positions = self._plans.of(struct.schema)
        values = field_values(struct, replace_null=self._replace_null)
        taken = [values[position] for position in positions]
        return self.part.put(record, made, Struct(made, taken))

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _plan(self, schema: ConnectSchema) -> tuple[ConnectSchema, tuple[int, ...]]:
        kept = [field for field in schema.fields if self._keeps(field.name)]
        fields = tuple(Field(self._renames.get(each.name, each.name), each.schema) for each in kept)
        # By the new name: a field that has the new name of another one is that other one to Kafka.
        sources = [self._sources.get(field.name, field.name) for field in fields]
        for name in sources:
            if name not in schema.positions:
                raise DataError(f"{name} is not a valid field name", hint='correct "renames"')
        return plain_struct(schema, fields), tuple(schema.positions[name] for name in sources)


class ReplaceFieldKey(ReplaceField):
    """ReplaceField of the key."""

    part = KEY


class ReplaceFieldValue(ReplaceField):
    """ReplaceField of the value."""

    part = VALUE
