"""Schemas with values that fit them: some of every type, and strategies for all the others."""

import datetime
import struct as layouts
from dataclasses import dataclass
from decimal import Decimal

from hypothesis import strategies as st

from connect.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    Field,
    Struct,
    Type,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)

NOON = datetime.datetime(2024, 5, 17, 12, 0, 0, 123000, tzinfo=datetime.UTC)
ADDRESS = struct("shop.Address", {"street": STRING, "number": INT32.as_optional()})
CUSTOMER = struct(
    "shop.Customer",
    {
        "id": INT64,
        "name": STRING.as_optional(),
        "limit": decimal(2).as_optional(),
        "since": date(),
        "address": ADDRESS,
        "tags": array(STRING),
        "scores": map_of(STRING, FLOAT64),
    },
)
ANNA = Struct.from_dict(
    CUSTOMER,
    {
        "id": 7,
        "name": "Änna",
        "limit": Decimal("12.50"),
        "since": datetime.date(2020, 2, 29),
        "address": {"street": "Hill", "number": None},
        "tags": ["a", ""],
        "scores": {"x": 1.5},
    },
)


@dataclass(frozen=True, slots=True)
class Example:
    """A value of a schema; the name is for the test's report."""

    name: str
    schema: ConnectSchema
    value: object


PRESENT = [
    Example("smallest int8", INT8, -128),
    Example("largest int8", INT8, 127),
    Example("int16", INT16, -300),
    Example("int32", INT32, 2**31 - 1),
    Example("int64", INT64, -(2**63)),
    Example("float", FLOAT32, 1.100000023841858),
    Example("large float", FLOAT32, 3.4028234663852886e38),
    Example("double", FLOAT64, 0.1),
    Example("small double", FLOAT64, 5e-324),
    Example("true", BOOLEAN, True),
    Example("false", BOOLEAN, False),
    Example("string", STRING, 'Grüße, "世界" \\ \n'),
    Example("empty string", STRING, ""),
    Example("bytes", BYTES, b"\x00\xff\x10"),
    Example("empty bytes", BYTES, b""),
    Example("decimal", decimal(2), Decimal("-12345678901234567890.12")),
    Example("decimal without scale", decimal(0), Decimal(128)),
    Example("date", date(), datetime.date(2024, 5, 17)),
    Example("early date", date(), datetime.date(1582, 10, 15)),
    Example("time", time(), datetime.time(23, 59, 59, 999000)),
    Example("timestamp", timestamp(), NOON),
    Example("early timestamp", timestamp(), NOON.replace(year=1900)),
    Example("array", array(INT32), [1, 2, 3]),
    Example("empty array", array(STRING), []),
    Example("array with null", array(STRING.as_optional()), ["a", None]),
    Example("array of arrays", array(array(INT64)), [[1], []]),
    Example("array of structs", array(ADDRESS), [Struct(ADDRESS, ["Hill", 1])]),
    Example("map", map_of(STRING, INT32), {"a": 1, "b": 2}),
    Example("map with null", map_of(STRING, INT32.as_optional()), {"a": None}),
    Example("map of numbers", map_of(INT32, STRING), {1: "a", 2: "b"}),
    Example("map of structs", map_of(STRING, ADDRESS), {"home": Struct(ADDRESS, ["Hill", 1])}),
    Example("struct", CUSTOMER, ANNA),
]
ABSENT = [
    Example(f"null {kind.name.lower()}", ConnectSchema(kind, optional=True), None)
    for kind in Type
    if kind.is_primitive
]


def float32(value: float) -> float:
    """The nearest number of single precision."""
    found: float = layouts.unpack("<f", layouts.pack("<f", value))[0]
    return found


_PRIMITIVES: dict[ConnectSchema, st.SearchStrategy[object]] = {
    INT8: st.integers(-(2**7), 2**7 - 1),
    INT16: st.integers(-(2**15), 2**15 - 1),
    INT32: st.integers(-(2**31), 2**31 - 1),
    INT64: st.integers(-(2**63), 2**63 - 1),
    FLOAT32: st.floats(width=32, allow_nan=False),
    FLOAT64: st.floats(allow_nan=False),
    BOOLEAN: st.booleans(),
    STRING: st.text(max_size=8),
    BYTES: st.binary(max_size=8),
    decimal(3): st.decimals(-(10**9), 10**9, places=3, allow_nan=False),
    date(): st.dates(),
    time(): st.times().map(lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)),
    timestamp(): st.datetimes(timezones=st.just(datetime.UTC)).map(
        lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)
    ),
}
_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


@st.composite
def _structs(draw: st.DrawFn, inner: st.SearchStrategy[ConnectSchema]) -> ConnectSchema:
    names = draw(st.lists(_NAMES, min_size=1, max_size=4, unique=True))
    record = draw(st.integers(0, 2**32))  # equal names of different structs are another matter
    return struct(f"r{record}", [Field(name, draw(inner)) for name in names])


def _optional(inner: st.SearchStrategy[ConnectSchema]) -> st.SearchStrategy[ConnectSchema]:
    return st.builds(lambda schema, null: schema.with_(optional=null), inner, st.booleans())


SCHEMAS: st.SearchStrategy[ConnectSchema] = st.recursive(
    _optional(st.sampled_from(list(_PRIMITIVES))),
    lambda inner: _optional(
        st.one_of(
            inner.map(array),
            inner.map(lambda values: map_of(STRING, values)),
            _structs(inner),
        )
    ),
    max_leaves=6,
)


def values_of(schema: ConnectSchema) -> st.SearchStrategy[object]:
    """Values that fit a schema."""
    present = _present(schema)
    return st.none() | present if schema.optional else present


def _present(schema: ConnectSchema) -> st.SearchStrategy[object]:
    if schema.type is Type.STRUCT:
        fields = st.tuples(*(values_of(each.schema) for each in schema.fields))
        return fields.map(lambda values: Struct(schema, list(values)))
    if schema.value_schema is None:
        return _PRIMITIVES[schema.with_(optional=False)]
    values = values_of(schema.value_schema)
    if schema.type is Type.ARRAY:
        return st.lists(values, max_size=3)
    assert schema.key_schema is not None
    return st.dictionaries(values_of(schema.key_schema), values, max_size=3)


@st.composite
def examples(draw: st.DrawFn, schemas: st.SearchStrategy[ConnectSchema] = SCHEMAS) -> Example:
    """Any schema with any value of it."""
    schema = draw(schemas)
    return Example("any", schema, draw(values_of(schema)))
