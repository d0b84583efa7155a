"""AVRO: rows through a registry, schemas of others, wrong bytes and values."""

import contextlib
import io
import json
from decimal import Decimal

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import RegistryError, SchemaError, SerdeError
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.schema import Reference, Schema
from broker.serde.wire_format import frame
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from sql.rows.avro_rows import AVRO
from sql.rows.row_format import Row, RowOptions
from tests.support.columns import columns_and_rows, data_types, values_of
from tests.support.memory_registry import MemoryRegistry

OPTIONS = RowOptions()
UNWRAPPED = RowOptions(wrapped=False)
KEY = RowOptions(is_key=True)
Given = tuple[tuple[Column, ...], Row]


def written_with(
    schema: object, value: object, columns: list[Column], options: RowOptions = OPTIONS
) -> Row | None:
    """What our columns read of a value that fastavro wrote."""
    registry = MemoryRegistry()
    schema_id = registry.register("other", Schema(json.dumps(schema)))
    out = io.BytesIO()
    out.write(frame(schema_id))
    fastavro.schemaless_writer(out, fastavro.parse_schema(_plain(schema)), value)
    return AVRO.serde(columns, options, registry).deserialize("t", out.getvalue())


def record(**fields: object) -> dict[str, object]:
    """A record of such fields."""
    declared = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return {"type": "record", "name": "r", "fields": declared}


@pytest.mark.slow
@given(columns_and_rows())
def test_rows_are_read_as_they_were_written(given: Given) -> None:
    columns, row = given
    serde = AVRO.serde(columns, OPTIONS, MemoryRegistry())
    assert serde.deserialize("t", serde.serialize("t", row)) == row


@pytest.mark.slow
@given(columns_and_rows())
def test_fastavro_reads_what_is_written(given: Given) -> None:
    columns, row = given
    registry = MemoryRegistry()
    data = AVRO.serde(columns, OPTIONS, registry).serialize("t", row)
    assert data is not None
    text = registry.version("t-value").schema.text
    source = io.BytesIO(data[5:])
    found = fastavro.schemaless_reader(source, _plain(json.loads(text)), None)
    assert isinstance(found, dict)
    assert list(found) == [each.name for each in columns]
    assert source.read() == b""


@pytest.mark.slow
@given(data_types().flatmap(lambda each: st.tuples(st.just(each), values_of(each))))
@pytest.mark.parametrize("options", [UNWRAPPED, KEY])
def test_a_single_column_is_written_alone(
    options: RowOptions, given: tuple[DataType, object]
) -> None:
    data_type, value = given
    serde = AVRO.serde([Column("K", data_type)], options, MemoryRegistry())
    data = serde.serialize("t", (value,))
    assert serde.deserialize("t", data) == (None if value is None else (value,))


@pytest.mark.slow
@given(columns_and_rows())
def test_a_given_schema_is_written_to_as_ones_own(given: Given) -> None:
    columns, row = given
    registry = MemoryRegistry()
    data = AVRO.serde(columns, OPTIONS, registry).serialize("t", row)
    options = RowOptions(schema_id=registry.version("t-value").schema_id)
    assert AVRO.serde(columns, options, registry).serialize("u", row) == data


def test_a_null_row_is_a_null_record() -> None:
    serde = AVRO.serde([Column("A", INT)], OPTIONS, MemoryRegistry())
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


def test_there_may_be_no_columns() -> None:
    registry = MemoryRegistry()
    value = AVRO.serde([], OPTIONS, registry)
    assert value.deserialize("t", value.serialize("t", ())) == ()
    key = AVRO.serde([], KEY, registry)
    assert key.serialize("t", ()) is None


def test_the_schema_is_registered_once_for_each_topic() -> None:
    registry = MemoryRegistry()
    serde = AVRO.serde([Column("A", INT)], OPTIONS, registry)
    for topic in ("t", "u", "t"):
        serde.serialize(topic, (1,))
    AVRO.serde([Column("A", INT)], KEY, registry).serialize("t", (1,))
    assert registry.calls == ["register t-value", "register u-value", "register t-key"]


COERCIONS: list[tuple[object, object, DataType, object]] = [
    ("int", 5, INT, 5),
    ("int", 5, BIGINT, 5),
    ("int", 5, STRING, "5"),
    ("long", 5, STRING, "5"),
    ("long", 5, BIGINT, 5),
    ("float", 0.5, DOUBLE, 0.5),
    ("double", 1e10, STRING, "1.0E10"),
    ("boolean", True, STRING, "true"),
    ("boolean", False, BOOLEAN, False),
    ("bytes", b"\1", BYTES, b"\1"),
    ({"type": "fixed", "name": "f", "size": 2}, b"ab", BYTES, b"ab"),
    ({"type": "enum", "name": "e", "symbols": ["X", "Y"]}, "Y", STRING, "Y"),
    ({"type": "long", "logicalType": "timestamp-micros"}, 7, BIGINT, 7),
    ({"type": "long", "logicalType": "timestamp-millis"}, 2**62, TIMESTAMP, 2**62),
    ({"type": "int", "logicalType": "date"}, -(2**31), DATE, -(2**31)),
    ({"type": "int", "logicalType": "time-millis"}, 7, TIME, 7),
    ({"type": "int", "logicalType": "time-millis"}, 7, BIGINT, 7),
    ({"type": "string", "logicalType": "uuid"}, "no uuid", STRING, "no uuid"),
    ({"type": "array", "items": "int"}, [1, 2], ArrayType(STRING), ["1", "2"]),
    ({"type": "map", "values": "int"}, {"a": 1}, MapType(STRING, BIGINT), {"a": 1}),
    ({"type": "map", "values": "int"}, {"a": 1}, MapType(STRING, STRING), {"a": "1"}),
    (["null", "int"], None, INT, None),
    (["int", "null"], 3, INT, 3),
]


@pytest.mark.parametrize(("schema", "value", "wanted", "expected"), COERCIONS)
def test_columns_accept_what_ksqldb_accepts(
    schema: object, value: object, wanted: DataType, expected: object
) -> None:
    assert written_with(record(a=schema), {"a": value}, [Column("A", wanted)]) == (expected,)


REFUSED: list[tuple[object, object, DataType]] = [
    ("string", "5", INT),
    ("long", 5, INT),
    ("int", 5, DOUBLE),
    ("int", 5, BOOLEAN),
    ("string", "a", BYTES),
    ("bytes", b"", DecimalType(2, 0)),
    ("int", 1, ArrayType(INT)),
    ({"type": "array", "items": "int"}, [1], MapType(STRING, INT)),
    ({"type": "array", "items": "string"}, ["a"], ArrayType(INT)),
    ({"type": "map", "values": "int"}, {"a": 1}, StructType((Field("A", INT),))),
    ({"type": "int", "logicalType": "date"}, 1, TIME),
]


@pytest.mark.parametrize(("schema", "value", "wanted"), REFUSED)
def test_columns_refuse_other_types(schema: object, value: object, wanted: DataType) -> None:
    with pytest.raises(SerdeError, match='column "A"'):
        written_with(record(a=schema), {"a": value}, [Column("A", wanted)])


def test_fields_are_found_whatever_their_case_and_missing_ones_are_null() -> None:
    struct = StructType((Field("X", INT), Field("Y", INT)))
    schema = record(foo="int", more="string", s={**record(x="int", z="int"), "name": "s"})
    value = {"foo": 1, "more": "", "s": {"x": 2, "z": 3}}
    columns = [Column("S", struct), Column("NONE", INT), Column("FOO", INT)]
    assert written_with(schema, value, columns) == ({"X": 2, "Y": None}, None, 1)


def test_a_decimal_is_read_with_the_scale_of_the_column() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    wide, narrow = Column("A", DecimalType(6, 3)), Column("A", DecimalType(4, 0))
    registry = MemoryRegistry()
    registry.register("other", Schema(json.dumps(record(a=schema))))
    data = frame(1) + b"\x02\x0f"
    found = AVRO.serde([wide], OPTIONS, registry).deserialize("t", data)
    assert str(found) == str((Decimal("1.500"),))
    with pytest.raises(SerdeError, match="does not fit"):
        AVRO.serde([narrow], OPTIONS, registry).deserialize("t", data)


def test_a_union_of_several_types_is_a_struct_of_its_branches() -> None:
    inner = {**record(x="int"), "name": "inner"}
    schema = record(a=["string", "null", "long", inner])
    registry = MemoryRegistry()
    registry.register("t-value", Schema(json.dumps(schema)))
    (column,) = AVRO.columns_of(parse_schema(Schema(json.dumps(schema))), OPTIONS)
    assert str(column.type) == (
        "STRUCT<`STRING` STRING, `LONG` BIGINT, `INNER` STRUCT<`X` INTEGER>>"
    )
    empty = {"STRING": None, "LONG": None, "INNER": None}
    for value, expected in [
        ("s", {**empty, "STRING": "s"}),
        (5, {**empty, "LONG": 5}),
        ({"x": 3}, {**empty, "INNER": {"X": 3}}),
        (None, None),
    ]:
        assert written_with(schema, {"a": value}, [column]) == (expected,)


def test_union_branches_are_written_to_the_schema_that_has_them() -> None:
    schema = Schema(json.dumps(record(a=["string", "null", "long"])))
    registry = MemoryRegistry()
    options = RowOptions(schema_id=registry.register("x", schema))
    columns = AVRO.columns_of(parse_schema(schema), options)
    serde = AVRO.serde(columns, options, registry)
    for value in ({"string": "s", "long": None}, {"string": None, "long": 5}, None):
        assert serde.deserialize("t", serde.serialize("t", (value,))) == (value,)
    with pytest.raises(SerdeError, match="2 branches"):
        serde.serialize("t", ({"string": "s", "long": 5},))


def test_a_given_schema_fills_in_its_defaults() -> None:
    inner = {
        "type": "record",
        "name": "inner",
        "fields": [{"name": "n", "type": "int", "default": 7}, {"name": "m", "type": "string"}],
    }
    fields = [
        {"name": "id", "type": "string"},
        {"name": "inner", "type": inner},
        {"name": "extra", "type": "string", "default": "foo"},
        {"name": "maybe", "type": ["null", "int"]},
        {"name": "many", "type": {"type": "array", "items": "bytes"}, "default": ["\xff"]},
        {"name": "pairs", "type": {"type": "map", "values": "int"}, "default": {"a": 1}},
    ]
    schema = Schema(json.dumps({"type": "record", "name": "r", "fields": fields}))
    registry = MemoryRegistry()
    options = RowOptions(schema_id=registry.register("x", schema))
    struct = StructType((Field("n", INT), Field("m", STRING)))
    columns = [Column("id", STRING), Column("inner", struct)]
    data = AVRO.serde(columns, options, registry).serialize("t", ("a", {"n": None, "m": "b"}))
    every = AVRO.columns_of(parse_schema(schema), options)
    read = AVRO.serde(every, OPTIONS, registry).deserialize("t", data)
    assert read == ("a", {"n": 7, "m": "b"}, "foo", None, [b"\xff"], {"a": 1})
    with pytest.raises(SerdeError, match="is null, but"):
        AVRO.serde(columns, options, registry).serialize("t", ("a", {"n": 1, "m": None}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([Column("a", INT), Column("b", INT)], 'lacks field "b"'),
        ([Column("c", INT)], '"a" that has no column'),
        ([Column("a", STRING)], "which is STRING"),
        ([Column("a", BIGINT)], "which is BIGINT"),
    ],
)
def test_a_given_schema_that_does_not_suit_is_refused_at_once(
    columns: list[Column], message: str
) -> None:
    registry = MemoryRegistry()
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
    if columns[0].name == "c":
        schema["fields"] = [{"name": "a", "type": "int"}, {"name": "c", "type": "int"}]
    options = RowOptions(schema_id=registry.register("x", Schema(json.dumps(schema))))
    with pytest.raises(SchemaError, match=message):
        AVRO.serde(columns, options, registry)


def test_types_of_other_subjects_are_resolved() -> None:
    registry = MemoryRegistry()
    registry.register("inner", Schema(json.dumps({**record(x="int"), "name": "inner"})))
    outer = Schema(
        json.dumps(record(a="inner", b="inner")), references=(Reference("inner", "inner", 1),)
    )
    schema_id = registry.register("t-value", outer)
    struct = StructType((Field("X", INT),))
    serde = AVRO.serde([Column("B", struct)], OPTIONS, registry)
    assert serde.deserialize("t", frame(schema_id) + b"\2\4") == ({"X": 2},)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (INT, "1"),
        (INT, 2**31),
        (BIGINT, 2**63),
        (BIGINT, 1.5),
        (DOUBLE, "a"),
        (BOOLEAN, 1),
        (STRING, b"a"),
        (STRING, "\ud800"),
        (BYTES, "a"),
        (DecimalType(2, 1), Decimal("1.25")),
        (DecimalType(2, 1), Decimal("NaN")),
        (DecimalType(2, 1), 1),
        (ArrayType(INT), 5),
        (ArrayType(INT), ["a"]),
        (MapType(STRING, INT), {1: 1}),
        (StructType((Field("A", INT),)), 5),
    ],
)
def test_values_of_wrong_types_are_refused(data_type: DataType, value: object) -> None:
    serde = AVRO.serde([Column("A", data_type)], OPTIONS, MemoryRegistry())
    with pytest.raises(SerdeError):
        serde.serialize("t", (value,))


@pytest.mark.slow
@given(columns_and_rows(), st.data())
def test_broken_bytes_raise_serde_errors_and_nothing_else(
    given: Given, data: st.DataObject
) -> None:
    columns, row = given
    serde = AVRO.serde(columns, OPTIONS, MemoryRegistry())
    written = bytearray(serde.serialize("t", row) or b"")
    for position in data.draw(st.lists(st.integers(5, len(written) - 1), max_size=3)):
        written[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(written)))
    for each in (bytes(written), bytes(written[:cut]), bytes(written) + b"\1"):
        with contextlib.suppress(SerdeError):
            serde.deserialize("t", each)


FLAT = record(
    a="boolean",
    b=["null", "int"],
    c=["long", "null"],
    d="float",
    e=["null", "double"],
    f="string",
    g=["bytes", "null"],
    h={"type": "enum", "name": "e", "symbols": ["X", "Y"]},
    i="long",
)
FLAT_VALUES = st.fixed_dictionaries(
    {
        "a": st.booleans(),
        "b": st.none() | st.integers(-(2**31), 2**31 - 1),
        "c": st.none() | st.integers(-(2**63), 2**63 - 1),
        "d": st.floats(width=32, allow_nan=False),
        "e": st.none() | st.floats(allow_nan=False),
        "f": st.text(max_size=5),
        "g": st.none() | st.binary(max_size=5),
        "h": st.sampled_from(["X", "Y"]),
        "i": st.integers(-(2**63), 2**63 - 1),
    }
)


@pytest.mark.slow
@given(FLAT_VALUES, st.permutations(list("abcdefghi")), st.data())
def test_flat_records_are_read_as_fastavro_reads_them(
    value: dict[str, object], names: list[str], data: st.DataObject
) -> None:
    schema = fastavro.parse_schema(FLAT)
    registry = MemoryRegistry()
    registry.register("t-value", Schema(json.dumps(FLAT)))
    types = {
        each.name: each.type
        for each in AVRO.columns_of(parse_schema(Schema(json.dumps(FLAT))), OPTIONS)
    }
    columns = [Column(name.upper(), types[name.upper()]) for name in names[:5]]
    serde = AVRO.serde(columns, OPTIONS, registry)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    content = bytearray(out.getvalue())
    whole = serde.deserialize("t", frame(1) + bytes(content))
    expected = fastavro.schemaless_reader(io.BytesIO(bytes(content)), schema, None)
    assert isinstance(expected, dict)
    assert whole == tuple(expected[name] for name in names[:5])
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SerdeError):
        broken = serde.deserialize("t", frame(1) + bytes(content))
        read = fastavro.schemaless_reader(io.BytesIO(bytes(content)), schema, None)
        assert isinstance(read, dict)
        assert repr(broken) == repr(tuple(read[name] for name in names[:5]))


@pytest.mark.parametrize(
    "data",
    [
        b"\x02",  # the number ends in the prefix of the next field
        b"\x04\x02\x00",  # no such branch
        b"\x02" + b"\xff" * 11 + b"\x01\x00",  # a number of too many bytes
        b"\x02" + b"\xff" * 9 + b"\x03\x00",  # more than 64 bits
        b"\x00\x09abcdefgh",  # a negative length
        b"\x00\x08abc",  # a length beyond the end
        b"\x00\x02\xff",  # no UTF-8
        b"\x00\x00\x00",  # a byte too many
    ],
)
def test_flat_records_that_are_broken_are_refused(data: bytes) -> None:
    registry = MemoryRegistry()
    columns = [Column("A", BIGINT), Column("B", STRING)]
    registry.register("t-value", Schema(json.dumps(record(a=["null", "long"], b="string"))))
    serde = AVRO.serde(columns, OPTIONS, registry)
    assert serde.deserialize("t", frame(1) + b"\x02\x01\x02x") == (-1, "x")
    with pytest.raises(SerdeError):
        serde.deserialize("t", frame(1) + data)


def test_schemas_that_cannot_be_rows_raise_serde_errors() -> None:
    recursive = record(a=["null", "r"])
    countless = record(a={"type": "array", "items": "null"})
    for schema in (recursive, countless, "int"):
        registry = MemoryRegistry()
        registry.register("t-value", Schema(json.dumps(schema)))
        with pytest.raises(SerdeError):
            AVRO.serde([Column("B", INT)], OPTIONS, registry).deserialize("t", frame(1) + b"\0")


def test_a_schema_that_is_too_deep_raises_a_serde_error() -> None:
    chain: list[object] = [{**record(a="int"), "name": "r0"}]
    chain += [{**record(a=f"r{level}"), "name": f"r{level + 1}"} for level in range(2_000)]
    registry = MemoryRegistry()
    registry.register("t-value", Schema(json.dumps(record(a=chain))))
    with pytest.raises(SerdeError):
        AVRO.serde([Column("B", INT)], OPTIONS, registry).deserialize("t", frame(1) + b"\0")


def test_an_unknown_schema_is_an_error_of_the_bytes_but_a_broken_registry_is_not() -> None:
    class Broken(MemoryRegistry):
        def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
            raise RegistryError(50001, "no store")

    with pytest.raises(SerdeError, match="not found"):
        AVRO.serde([Column("B", INT)], OPTIONS, MemoryRegistry()).deserialize("t", frame(9))
    with pytest.raises(RegistryError):
        AVRO.serde([Column("B", INT)], OPTIONS, Broken()).deserialize("t", frame(9))


def test_a_registry_is_needed() -> None:
    with pytest.raises(SchemaError, match="needs a schema registry"):
        AVRO.serde([Column("B", INT)], OPTIONS)


def _plain(schema: object) -> object:
    """The schema without logical types, so that fastavro takes plain values."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key != "logicalType"}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema
