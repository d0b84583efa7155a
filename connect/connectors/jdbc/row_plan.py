"""RowPlan: the columns for a record's schemas, and how to get their values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from connect.connectors.jdbc.sink_config import KAFKA_FIELDS, KeyMode, RowMapping
from connect.data import INT32, INT64, STRING, ConnectSchema, Struct, Type
from connect.errors import DataError
from connect.records import SinkRecord

Values = tuple[object, ...]
Take = Callable[[SinkRecord], Values]


@dataclass(frozen=True, slots=True)
class SinkField:
    """One field that becomes a column."""

    name: str
    schema: ConnectSchema
    is_key: bool


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The fields of records with one pair of schemas; key fields come first."""

    fields: tuple[SinkField, ...]
    key_count: int
    row: Take  # all values, for records that have a value
    key: Take  # those of the key alone


def plan_rows(
    mapping: RowMapping, key_schema: ConnectSchema | None, value_schema: ConnectSchema | None
) -> RowPlan:
    """The plan for records with these schemas; DataError if required parts are missing."""
    if value_schema is not None and value_schema.type is not Type.STRUCT:
        raise DataError(f"a record's value must be a struct, not {value_schema.type.name}")
    keys, key = _key_part(mapping, key_schema, value_schema)
    key_names = {field.name for field in keys}
    others = [
        SinkField(field.name, field.schema, False)
        for field in (value_schema.fields if value_schema is not None else ())
        if field.name not in key_names
        and (not mapping.whitelist or field.name in mapping.whitelist)
    ]
    fields = (*keys, *others)
    if not fields:
        raise DataError("No fields found using key and value schemas: there is nothing to write")
    if value_schema is None:
        row = key
    elif not keys or mapping.key_mode is KeyMode.RECORD_VALUE:
        row = _value_getter(value_schema, fields, mapping, _value_of)
    else:
        row = _both(key, _value_getter(value_schema, others, mapping, _value_of))
    return RowPlan(fields, len(keys), row, key)


def _value_of(record: SinkRecord) -> object:
    return record.value


def _key_of(record: SinkRecord) -> object:
    return record.key


def _both(key: Take, others: Take) -> Take:
    return lambda record: key(record) + others(record)


def _key_part(
    mapping: RowMapping, key_schema: ConnectSchema | None, value_schema: ConnectSchema | None
) -> tuple[list[SinkField], Take]:
    match mapping.key_mode:
        case KeyMode.NONE:
            return [], lambda record: ()
        case KeyMode.KAFKA:
            names = mapping.key_fields or KAFKA_FIELDS
            schemas = (STRING, INT32, INT64)
            fields = [
                SinkField(name, schema, True) for name, schema in zip(names, schemas, strict=True)
            ]
            return fields, _place_of
        case KeyMode.RECORD_KEY:
            if key_schema is None:
                raise DataError("pk.mode record_key needs records with a key and its schema")
            if key_schema.type is not Type.STRUCT:
                return _primitive_key(mapping, key_schema)
            fields = _named_fields(mapping, key_schema, "key")
            return fields, _value_getter(key_schema, fields, mapping, _key_of)
        case KeyMode.RECORD_VALUE:
            if value_schema is None:
                raise DataError("pk.mode record_value needs records with a value and its schema")
            fields = _named_fields(mapping, value_schema, "value")
            return fields, _value_getter(value_schema, fields, mapping, _value_of)


def _place_of(record: SinkRecord) -> Values:
    return record.original_topic, record.original_partition, record.original_offset


def _primitive_key(mapping: RowMapping, schema: ConnectSchema) -> tuple[list[SinkField], Take]:
    if not schema.type.is_primitive or len(mapping.key_fields) != 1:
        raise DataError(
            f"a key of type {schema.type.name} needs one name in pk.fields, "
            f"not {len(mapping.key_fields)}"
        )

    def key(record: SinkRecord) -> Values:
        if record.key is None:
            raise DataError("pk.mode record_key needs records with a key")
        return (record.key,)

    return [SinkField(mapping.key_fields[0], schema, True)], key


def _named_fields(mapping: RowMapping, schema: ConnectSchema, part: str) -> list[SinkField]:
    names = mapping.key_fields or tuple(field.name for field in schema.fields)
    fields = []
    for name in names:
        field = schema.field(name)
        if field is None:
            raise DataError(
                f'field "{name}" of pk.fields is not in the record\'s {part}',
                hint=f"the fields are {', '.join(schema.positions)}",
            )
        fields.append(SinkField(name, field.schema, True))
    return fields


def _value_getter(
    schema: ConnectSchema | None,
    fields: Sequence[SinkField],
    mapping: RowMapping,
    part_of: Callable[[SinkRecord], object],
) -> Take:
    """A function that returns the fields' values of a record."""
    if schema is None or not fields:
        return lambda record: ()
    names = [field.name for field in fields]
    if mapping.null_is_default and any(field.schema.default is not None for field in fields):

        def with_defaults(record: SinkRecord) -> Values:
            struct = _struct(part_of(record))
            return tuple(struct[name] for name in names)

        return with_defaults
    positions = [schema.positions[name] for name in names]
    if positions == list(range(len(schema.fields))):
        return lambda record: tuple(_struct(part_of(record)).values)
    if len(positions) == 1:
        (only,) = positions
        return lambda record: (_struct(part_of(record)).values[only],)
    take: Callable[[Sequence[object]], Values] = itemgetter(*positions)
    return lambda record: take(_struct(part_of(record)).values)


def _struct(value: object) -> Struct:
    if not isinstance(value, Struct):
        raise DataError(f"expected a struct, but found {type(value).__name__}")
    return value
