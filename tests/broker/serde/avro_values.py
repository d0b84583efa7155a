"""Strategies: Avro schemas, and values of them that come back as they were."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import strategies as st

# Any: JSON of schemas, which has no narrower type.
Json = Any
Typed = tuple[Json, st.SearchStrategy[object]]

_INT = st.integers(-(2**31), 2**31 - 1)
_LONG = st.integers(-(2**63), 2**63 - 1)
_SIMPLE: list[Typed] = [
    ("boolean", st.booleans()),
    ("int", _INT),
    ("long", _LONG),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=20)),
    ("string", st.text(max_size=20)),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    (
        {"type": "int", "logicalType": "time-millis"},
        st.times().map(lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)),
    ),
    ({"type": "long", "logicalType": "time-micros"}, st.times()),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        st.integers(0, 10**15).map(
            lambda each: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=each)
        ),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        st.integers(-(10**10) + 1, 10**10 - 1).map(lambda each: Decimal(each).scaleb(-2)),
    ),
    ({"type": "string", "logicalType": "uuid"}, st.uuids()),
]


@st.composite
def schemas(draw: st.DrawFn) -> Typed:
    """A schema with named types of its own names, and the strategy of its values."""
    numbers = count()

    def a_type(depth: int) -> Typed:
        kinds = ["simple", "enum", "fixed"]
        kinds += ["record", "array", "map", "optional"] if depth else []
        match draw(st.sampled_from(kinds)):
            case "simple":
                return draw(st.sampled_from(_SIMPLE))
            case "enum":
                symbols = ["A", "B", "C"][: draw(st.integers(1, 3))]
                named = {"type": "enum", "name": f"N{next(numbers)}", "symbols": symbols}
                return named, st.sampled_from(symbols)
            case "fixed":
                size = draw(st.integers(1, 9))
                fixed: Json = {"type": "fixed", "name": f"N{next(numbers)}", "size": size}
                return fixed, st.binary(min_size=size, max_size=size)
            case "array":
                items, values = a_type(depth - 1)
                return {"type": "array", "items": items}, st.lists(values, max_size=3)
            case "map":
                items, values = a_type(depth - 1)
                keys = st.text(max_size=5)
                return {"type": "map", "values": items}, st.dictionaries(keys, values, max_size=3)
            case "optional":
                # Branches of one Python type would be a matter of luck, so there is one and null.
                inner, values = a_type(0)
                return ["null", inner], st.none() | values
            case _:
                return a_record(depth)

    def a_record(depth: int) -> Typed:
        name = f"space.N{next(numbers)}"
        fields = {f"f{number}": a_type(depth - 1) for number in range(draw(st.integers(1, 4)))}
        declared = [{"name": each, "type": typed[0]} for each, typed in fields.items()]
        values = st.fixed_dictionaries({each: typed[1] for each, typed in fields.items()})
        return {"type": "record", "name": name, "fields": declared}, values

    return a_record(3)


@st.composite
def schemas_with_values(draw: st.DrawFn) -> tuple[Json, object]:
    """A schema and a value of it."""
    schema, values = draw(schemas())
    return schema, draw(values)
