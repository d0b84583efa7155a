"""Cast: casts fields, or a whole key or value, to other types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import Check, ConfigDef, ConfigType, Importance, invalid
from connect.data import ConnectSchema, Field, Struct, Type
from connect.errors import ConfigError, DataError
from connect.records import Record
from connect.transforms.cast_values import (
    CAST_TO,
    Caster,
    caster,
    ensure_castable,
    names_of,
    schemaless_caster,
)
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    field_values,
    require_map,
    require_struct,
    with_replace_null,
)

PURPOSE = "cast types"
_TYPES = {
    "FLOAT32": Type.FLOAT32,
    "FLOAT64": Type.FLOAT64,
    **{each.name: each for each in Type},
}


@dataclass(frozen=True, slots=True)
class _Spec:
    """The target types: of some fields, or of the whole key or value."""

    fields: Mapping[str, Type]
    whole: Type | None


def _parse(mappings: list[str]) -> _Spec:
    fields: dict[str, Type] = {}
    whole = None
    for mapping in mappings:
        parts = mapping.rstrip(":").split(":")
        if len(parts) > 2:
            raise invalid("renames", mappings, f"Invalid rename mapping: {mapping}")
        target = _target(parts[-1].strip())
        if len(parts) == 1:
            whole = target
        else:
            fields[parts[0].strip()] = target
    if whole is not None and len(mappings) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only "
            "specify a single cast in their spec"
        )
    return _Spec(fields, whole)


def _target(text: str) -> Type:
    target = _TYPES.get(text.upper())
    if target is None:
        raise ConfigError(
            f"Invalid value java.lang.IllegalArgumentException: No enum constant org.apache.kafka."
            f"connect.data.Schema.Type.{text.upper()} for configuration Invalid type found in "
            f"casting spec: {text}"
        )
    if target not in CAST_TO:
        raise ConfigError(
            f"Cast transformation does not support casting to {target.name}; "
            f"supported types are {names_of(CAST_TO)}"
        )
    return target


def _ensure_spec(name: str, value: object) -> None:
    if not isinstance(value, list) or not value:
        raise ConfigError("Must specify at least one field to cast.")
    _parse(value)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to cast the values of one schema: `casters` by the positions of their fields."""

    schema: ConnectSchema
    whole: Caster | None
    casters: tuple[tuple[int, Caster], ...]


class Cast(Transformation):
    """Casts fields, or the whole key or value, to other types."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        definition = ConfigDef().define(
            "spec",
            ConfigType.LIST,
            validator=Check(
                _ensure_spec, "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"
            ),
            importance=Importance.HIGH,
            doc="field:type for each field to cast, separated by commas, or one type for the whole "
            "key or value: int8, int16, int32, int64, float32, float64, boolean or string. Bytes "
            "can only become a string.",
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._spec = _parse(settings.strings("spec"))
        self._replace_null = settings.boolean("replace.null.with.default")
        self._plans = SchemaPlans(self._plan)
        self._fields = {name: schemaless_caster(to) for name, to in self._spec.fields.items()}
        self._whole = None if self._spec.whole is None else schemaless_caster(self._spec.whole)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if value is None:
            return record
        if schema is None:
            return self.part.put(record, None, self._cast_schemaless(value))
        plan = self._plans.of(schema)
        if plan.whole is not None:
            return self.part.put(record, plan.schema, plan.whole(value))
        struct = require_struct(value, PURPOSE)
        values = field_values(struct, replace_null=self._replace_null).copy()
        for position, cast in plan.casters:
            values[position] = cast(values[position])
        return self.part.put(record, plan.schema, Struct(plan.schema, values))

    def _cast_schemaless(self, value: object) -> object:
        if self._whole is not None:
            return self._whole(value)
        mapping = require_map(value, PURPOSE)
        return {**mapping, **{name: cast(mapping.get(name)) for name, cast in self._fields.items()}}

    def _plan(self, schema: ConnectSchema) -> _Plan:
        if self._spec.whole is not None:
            return _whole_plan(schema, self._spec.whole)
        if schema.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        if schema.default is not None:
            ensure_castable(schema.type)
        fields = list(schema.fields)
        casters: list[tuple[int, Caster]] = []
        for position, field in enumerate(schema.fields):
            target = self._spec.fields.get(field.name)
            if target is not None:
                cast = caster(field.schema, target)
                default = cast(field.schema.default)
                made = ConnectSchema(target, field.schema.optional, default=default)
                fields[position] = Field(field.name, made)
                casters.append((position, cast))
        return _Plan(schema.with_(fields=tuple(fields)), None, tuple(casters))


def _whole_plan(schema: ConnectSchema, target: Type) -> _Plan:
    cast = caster(schema, target)
    made = schema.with_(
        type=target, default=cast(schema.default), fields=(), key_schema=None, value_schema=None
    )
    return _Plan(made, cast, ())


class CastKey(Cast):
    """Cast of the key."""

    part = KEY


class CastValue(Cast):
    """Cast of the value."""

    part = VALUE
