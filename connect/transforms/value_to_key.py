"""ValueToKey: a key from fields of the value."""

from collections.abc import Mapping

from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance, ValidList
from connect.data import ConnectSchema, Field, Struct, struct
from connect.errors import DataError
from connect.records import Record
from connect.transforms.parts import (
    SchemaPlans,
    field_values,
    require_map,
    require_struct,
    with_replace_null,
)


class ValueToKey(Transformation):
    """Replaces the key with fields of the value."""

    @classmethod
    def config(cls) -> ConfigDef:
        definition = ConfigDef().define(
            "fields",
            ConfigType.LIST,
            validator=ValidList(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The fields of the value that form the key, separated by commas.",
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._fields = settings.strings("fields")
        self._replace_null = settings.boolean("replace.null.with.default")
        self._plans = SchemaPlans(self._plan)

    def apply(self, record: Record) -> Record:
        purpose = "copying fields from value to key"
        if record.value_schema is None:
            mapping = require_map(record.value, purpose)
            key = {name: mapping.get(name) for name in self._fields}
            return record.changed(key_schema=None, key=key)
        whole = require_struct(record.value, purpose)
        schema, positions = self._plans.of(whole.schema)
        values = field_values(whole, replace_null=self._replace_null)
        return record.changed(
            key_schema=schema, key=Struct(schema, [values[position] for position in positions])
        )

    def _plan(self, schema: ConnectSchema) -> tuple[ConnectSchema, tuple[int, ...]]:
        fields: list[Field] = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                names = ", ".join(schema.positions)
                raise DataError(f"Field does not exist: {name}", hint=f"the fields are {names}")
            fields.append(field)
        return struct(None, fields), tuple(schema.positions[name] for name in self._fields)
