"""Parquet files; the only importer of pyarrow in connect."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow
from pyarrow import parquet

from connect.connectors.files_sink.commit_log import sync_file
from connect.data import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Struct,
    Type,
)
from connect.errors import ConfigError, ConnectError, DataError
from connect.logical_values import logical_name, scale_of
from connect.records import SinkRecord

# Rows that are buffered before they are written as one row group.
ROW_GROUP_ROWS = 10_000
CODECS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
_DECIMAL_DIGITS = 38
_PRIMITIVES = {
    Type.INT8: pyarrow.int8(),
    Type.INT16: pyarrow.int16(),
    Type.INT32: pyarrow.int32(),
    Type.INT64: pyarrow.int64(),
    Type.FLOAT32: pyarrow.float32(),
    Type.FLOAT64: pyarrow.float64(),
    Type.BOOLEAN: pyarrow.bool_(),
    Type.STRING: pyarrow.string(),
    Type.BYTES: pyarrow.binary(),
}

Convert = Callable[[object], object]


class Parquet:
    """Rows of structs, with one schema per file."""

    extension = ".parquet"

    def __init__(self, codec: str) -> None:
        if codec not in CODECS:
            raise ConfigError(
                f'Parquet files cannot have compression.type "{codec}"',
                hint=f"use one of {', '.join(CODECS)}",
            )
        self._codec = codec

    def open(self, path: Path, schema: ConnectSchema | None) -> "_RowsWriter":
        """A new file for structs of the schema."""
        if schema is None or schema.type is not Type.STRUCT:
            kind = "no schema" if schema is None else f"the schema {schema}"
            raise DataError(
                f"a Parquet row must be a struct, but the value has {kind}",
                hint="use a converter with schemas, the transform HoistField, or format=json",
            )
        return _RowsWriter(path, schema, self._codec)


class _RowsWriter:
    def __init__(self, path: Path, schema: ConnectSchema, codec: str) -> None:
        self._path = path
        self._fields = schema.fields
        self._schema = pyarrow.schema([_field(field.name, field.schema) for field in schema.fields])
        self._converts = [_converter(field.schema) for field in schema.fields]
        self._writer = parquet.ParquetWriter(path, self._schema, compression=codec)
        self._rows: list[list[object]] = []

    def write(self, record: SinkRecord) -> None:
        if not isinstance(record.value, Struct):
            raise DataError("a Parquet row must be a struct")
        self._rows.append(record.value.values)
        if len(self._rows) >= ROW_GROUP_ROWS:
            self._write_rows()

    def write_many(self, records: Sequence[SinkRecord]) -> None:
        if set(map(type, (record.value for record in records))) != {Struct}:
            raise DataError("a Parquet row must be a struct")
        for record in records:
            self.write(record)

    def close(self) -> None:
        if self._rows:
            self._write_rows()
        self._writer.close()
        sync_file(self._path)

    def discard(self) -> None:
        self._writer.close()

    def _write_rows(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [self._array(position, column) for position, column in enumerate(columns)]
        self._writer.write_table(pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []

    # Any: pyarrow has no types.
    def _array(self, position: int, column: Sequence[object]) -> object:
        convert = self._converts[position]
        values = column if convert is None else [convert(value) for value in column]
        try:
            return pyarrow.array(values, self._schema.field(position).type)
        except (pyarrow.ArrowException, TypeError) as error:
            name = self._fields[position].name
            # Not a DataError: that would be reported for the record being written now.
            raise ConnectError(
                f'values of field "{name}" do not match their schema: {error}', at=str(self._path)
            ) from None


def _field(name: str, schema: ConnectSchema) -> pyarrow.Field:
    return pyarrow.field(name, _type(schema), nullable=schema.optional)


def _type(schema: ConnectSchema) -> pyarrow.DataType:
    match logical_name(schema):
        case name if name == DECIMAL_NAME:
            return pyarrow.decimal128(_DECIMAL_DIGITS, scale_of(schema))
        case name if name == DATE_NAME:
            return pyarrow.date32()
        case name if name == TIME_NAME:
            return pyarrow.time32("ms")
        case name if name == TIMESTAMP_NAME:
            return pyarrow.timestamp("ms", tz="UTC")
    if schema.type in _PRIMITIVES:
        return _PRIMITIVES[schema.type]
    if schema.type is Type.STRUCT:
        return pyarrow.struct([_field(field.name, field.schema) for field in schema.fields])
    assert schema.value_schema is not None, "arrays and maps have a schema of their values"
    values = _field("element", schema.value_schema)
    if schema.type is Type.ARRAY:
        return pyarrow.list_(values)
    assert schema.key_schema is not None, "maps have a schema of their keys"
    return pyarrow.map_(_type(schema.key_schema), values.with_name("value"))


def _converter(schema: ConnectSchema) -> Convert | None:
    """The function that converts a value for pyarrow; None if no conversion is needed."""
    inner = _inner_converter(schema)
    default = schema.default
    if default is None:
        return inner and _unless_null(inner)
    if inner is None:
        return lambda value: default if value is None else value
    return lambda value: inner(default if value is None else value)


def _unless_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _inner_converter(schema: ConnectSchema) -> Convert | None:
    if schema.type is Type.STRUCT:
        parts = [(field.name, _converter(field.schema)) for field in schema.fields]
        return lambda value: _dict_of(value, parts)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        convert = _converter(schema.value_schema)
        return convert and (lambda value: [convert(one) for one in _list(value)])
    if (
        schema.type is Type.MAP
        and schema.key_schema is not None
        and schema.value_schema is not None
    ):
        of_keys = _converter(schema.key_schema) or _same
        of_values = _converter(schema.value_schema) or _same
        return lambda value: [(of_keys(key), of_values(one)) for key, one in _items(value)]
    return None


def _dict_of(value: object, parts: list[tuple[str, Convert | None]]) -> dict[str, object]:
    assert isinstance(value, Struct), "a field with a struct's schema holds structs"
    return {
        name: one if convert is None else convert(one)
        for (name, convert), one in zip(parts, value.values, strict=True)
    }


def _same(value: object) -> object:
    return value


def _list(value: object) -> list[object]:
    assert isinstance(value, list), "a field with an array's schema holds lists"
    return value


def _items(value: object) -> list[tuple[object, object]]:
    assert isinstance(value, dict), "a field with a map's schema holds dicts"
    return list(value.items())
