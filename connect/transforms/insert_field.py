"""InsertField: inserts fields with metadata of the record, or a constant."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance, Settings, invalid
from connect.data import INT32, INT64, STRING, ConnectSchema, Field, Struct, timestamp
from connect.errors import ConfigError
from connect.logical_values import timestamp_of
from connect.records import Record
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    field_values,
    plain_struct,
    require_map,
    require_sink_record,
    require_struct,
    with_replace_null,
)

PURPOSE = "field insertion"
_SCHEMAS = {
    "topic": STRING,
    "partition": INT32,
    "offset": INT64,
    "timestamp": timestamp(),
    "static": STRING,
}
_DOCS = {
    "topic": "The field for the topic name",
    "partition": "The field for the partition number",
    "offset": "The field for the offset, which only sink records have",
    "timestamp": "The field for the record's timestamp",
    "static": "The field for static.value",
}


@dataclass(frozen=True, slots=True)
class _Insertion:
    """One field to insert."""

    what: str
    name: str
    optional: bool

    @classmethod
    def of(cls, settings: Settings, what: str) -> "_Insertion | None":
        text = settings.text_or_none(f"{what}.field")
        if text is None:
            return None
        marked = text.endswith(("?", "!"))
        return cls(what, text[:-1] if marked else text, not text.endswith("!"))

    @property
    def field(self) -> Field:
        schema = _SCHEMAS[self.what]
        return Field(self.name, schema.as_optional() if self.optional else schema)


class InsertField(Transformation):
    """Adds fields with the record's topic, partition, offset or timestamp, or with a constant."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        definition = ConfigDef()
        for what, doc in _DOCS.items():
            definition.define(
                f"{what}.field",
                ConfigType.STRING,
                None,
                importance=Importance.MEDIUM,
                doc=f"{doc}; with the suffix ! it is a required field, with ? or no suffix an "
                "optional one.",
            )
        definition.define(
            "static.value",
            ConfigType.STRING,
            None,
            importance=Importance.MEDIUM,
            doc="The value of static.field.",
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        found = [_Insertion.of(settings, what) for what in _SCHEMAS]
        self._insertions = [each for each in found if each is not None]
        self._static_value = settings.text_or_none("static.value")
        self._replace_null = settings.boolean("replace.null.with.default")
        if not self._insertions:
            raise ConfigError("No field insertion configured")
        if self._insertions[-1].what == "static" and self._static_value is None:
            name = self._insertions[-1].name
            raise invalid("static.value", None, f"No value specified for static field: {name}")
        self._plans = SchemaPlans(self._inserted)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if value is None:
            return record
        if schema is None:
            return self.part.put(record, None, self._insert_into_map(record, value))
        struct = require_struct(value, PURPOSE)
        inserted = self._plans.of(struct.schema)
        values = field_values(struct, replace_null=self._replace_null).copy()
        for insertion in self._insertions:
            found = self._value(record, insertion.what)
            if insertion.what == "timestamp" and isinstance(found, int):
                found = timestamp_of(found)
            values.append(found)
        return self.part.put(record, inserted, Struct(inserted, values))

    def _insert_into_map(self, record: Record, value: object) -> dict[str, object]:
        updated = dict(require_map(value, PURPOSE))
        for insertion in self._insertions:
            found = self._value(record, insertion.what)
            if found is not None:
                updated[insertion.name] = found
        return updated

    def _value(self, record: Record, what: str) -> object:
        match what:
            case "topic":
                return record.topic
            case "partition":
                return record.partition
            case "offset":
                return require_sink_record(record, PURPOSE).offset
            case "timestamp":
                return record.timestamp_ms
            case _:
                return self._static_value

    def _inserted(self, schema: ConnectSchema) -> ConnectSchema:
        return plain_struct(
            schema, (*schema.fields, *(insertion.field for insertion in self._insertions))
        )


class InsertFieldKey(InsertField):
    """InsertField of the key."""

    part = KEY


class InsertFieldValue(InsertField):
    """InsertField of the value."""

    part = VALUE
