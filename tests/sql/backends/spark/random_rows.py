"""Seeded rows for the columns of typing_scope: extremes, nulls, texts that are hard to read."""

from decimal import Decimal
from math import inf, nan
from random import Random
from typing import Any

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
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from tests.sql.analyse.typing_scope import COLUMNS
from tests.sql.backends.spark.native_calls import TEXTS

CHARACTERS = "abx%_1 é\ue000😀"
EDGES = [0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31)]
LONG_EDGES = [*EDGES, 2**63 - 1, -(2**63), 2**53 + 1, 2**32]
DOUBLES = [0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 2.5, 1e300, -1e300, nan, inf, -inf, 5e-324, 2.0**52]
DOUBLES += [2.0**31, 2.0**63, -(2.0**63), 0.49999999999999994, 1e16, 9007199254740993.0, 0.1]


def random_rows(count: int, seed: int = 6) -> list[tuple[Any, ...]]:
    """So many rows."""
    random = Random(seed)
    return [tuple(_value(each, random) for each in COLUMNS.values()) for _ in range(count)]


def _value(type_: DataType, random: Random) -> Any:
    if random.random() < 0.12:
        return None
    match type_:
        case DecimalType(precision, scale):
            digits = random.randint(0, precision)
            number = random.randint(-(10**digits) + 1, 10**digits - 1)
            return Decimal(number).scaleb(-scale)
        case ArrayType(element):
            return [_value(element, random) for _ in range(random.randint(0, 4))]
        case MapType(key, value):
            keys = random.sample(["a", "k", "", "é"], random.randint(0, 3))
            assert key is STRING
            return {each: _value(value, random) for each in keys}
        case StructType(fields):
            return {each.name: _value(each.type, random) for each in fields}
        case _:
            return _plain(type_, random)


def _plain(type_: DataType, random: Random) -> Any:
    is_edge = random.random() < 0.5
    if type_ in (INT, DATE):
        return random.choice(EDGES) if is_edge else random.randint(-20, 20)
    if type_ in (BIGINT, TIMESTAMP):
        return random.choice(LONG_EDGES) if is_edge else random.randint(-(10**13), 10**13)
    if type_ is DOUBLE:
        return random.choice(DOUBLES) if is_edge else random.uniform(-100, 100)
    if type_ is BOOLEAN:
        return random.random() < 0.5
    if type_ is BYTES:
        return random.randbytes(random.randint(0, 3))
    if type_ is TIME:
        return random.randint(0, 86_399_999)
    assert type_ is STRING, type_
    if is_edge:
        return random.choice(TEXTS)
    return "".join(random.choice(CHARACTERS) for _ in range(random.randint(0, 5)))
