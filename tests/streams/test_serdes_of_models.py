"""Dataclasses, msgspec and pydantic models and containers of them as JSON values."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SerdeError
from broker.serde import JsonSerde, StringSerde
from streams.errors import TopologyError
from streams.serdes import serde_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    article: str
    price: Decimal
    count: int = 1
    colour: Colour | None = None


class Visit(msgspec.Struct, tag=True):
    page: str
    at: datetime


class Click(msgspec.Struct, tag=True):
    x: int


class Customer(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName")
    born: date | None = None


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Address(TypedDict):
    street: str
    number: int


@attrs.define
class Parcel:
    weight: float
    parts: list[Line]


@dataclass
class Shop:
    owner: Customer
    opens: time = time(9)
    lines: dict[str, Line] = field(default_factory=dict)


LINE = Line("flour", Decimal("2.50"), 3, Colour.BLUE)
OWNER = Customer(fullName="Ann", born=date(1990, 5, 1))
VALUES: list[tuple[Any, object]] = [
    (Line, LINE),
    (Visit, Visit("/", datetime(2024, 2, 29, 12, tzinfo=UTC))),
    (Visit | Click, Click(7)),
    (Customer, OWNER),
    (Point, Point(1.5, 2.5)),
    (Address, {"street": "Mill Lane", "number": 3}),
    (Parcel, Parcel(1.5, [LINE])),
    (Shop, Shop(OWNER, time(8, 30), {"a": LINE})),
    (Colour, Colour.RED),
    (list[Line], [LINE, LINE]),
    (dict[str, Line], {"a": LINE}),
    (list[Customer], [OWNER]),
    (Line | None, LINE),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "x")),
    (tuple[date, ...], (date(2024, 1, 1),)),
    (datetime, datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=UTC)),
    (date, date(2024, 2, 29)),
    (time, time(1, 2, 3, 4)),
    (timedelta, timedelta(days=1, seconds=3)),
    (Decimal, Decimal("1.10")),
    (list[UUID], [UUID(int=7)]),
]


@pytest.mark.parametrize(("wanted", "value"), VALUES, ids=[str(each[0]) for each in VALUES])
def test_values_of_models_come_back_as_they_were(wanted: Any, value: object) -> None:
    serde = serde_of(wanted)
    data = serde.serialize("t", value)
    assert data is not None
    found = serde.deserialize("t", data)
    assert found == value
    assert type(found) is type(value)
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


@pytest.mark.parametrize(
    ("wanted", "data", "reason"),
    [
        (
            Line,
            b'{"article": "a", "price": true}',
            r"Expected `decimal`, got `bool` - at `\$.price`",
        ),
        (Line, b'{"price": "1"}', "missing required field `article`"),
        (Line, b'{"article": 1, "price": "1"}', r"at `\$.article`"),
        (list[Line], b'[{"article": "a", "price": "1", "count": "x"}]', r"at `\$\[0\].count`"),
        (Customer, b'{"fullName": 5}', "fullName"),
        (Shop, b'{"owner": {}}', "fullName"),
        (Colour, b'"green"', "Invalid enum value 'green'"),
        (datetime, b'"yesterday"', "Invalid RFC3339"),
        (Line | None, b"[]", "Expected `object | null`"),
        (Line, b"[" * 100_000, "Expected `object`, got `array`"),
    ],
)
def test_json_that_does_not_fit_is_an_error_with_its_path(
    wanted: Any, data: bytes, reason: str
) -> None:
    with pytest.raises(SerdeError, match=reason):
        serde_of(wanted).deserialize("t", data)


def test_missing_fields_take_defaults_and_unknown_ones_are_ignored() -> None:
    data = b'{"article": "a", "price": "1", "weight": 5}'
    assert serde_of(Line).deserialize("t", data) == Line("a", Decimal(1))


def test_null_of_an_optional_type_is_none() -> None:
    assert serde_of(Line | None).deserialize("t", b"null") is None
    assert isinstance(serde_of(str | None), StringSerde)
    assert isinstance(serde_of(list[dict[str, int | None]]), JsonSerde)


def test_a_value_that_json_cannot_have_is_an_error() -> None:
    with pytest.raises(SerdeError, match="cannot encode as Line: complex cannot be represented"):
        serde_of(Line).serialize("t", Line("a", 1j))  # type: ignore[arg-type]
    with pytest.raises(SerdeError, match="the value is a str"):
        serde_of(Customer).serialize("t", "Ann")


def test_types_that_cannot_be_told_apart_are_refused_when_the_topology_is_built() -> None:
    with pytest.raises(TopologyError, match="more than one dataclass"):
        serde_of(Line | Shop)


def test_a_class_may_name_one_that_is_defined_after_it() -> None:
    scope: dict[str, Any] = {"dataclass": dataclass, "__name__": __name__}
    exec("@dataclass\nclass Early:\n    other: 'LaterOne'\n", scope)
    serde = serde_of(scope["Early"])
    globals()["LaterOne"] = Line
    try:
        found = serde.deserialize("t", b'{"other": {"article": "a", "price": "2"}}')
        assert found is not None
        assert found.other == Line("a", Decimal(2))
    finally:
        del globals()["LaterOne"]


LINES = st.builds(
    Line,
    article=st.text(),
    price=st.decimals(allow_nan=False, allow_infinity=False),
    count=st.integers(-(2**63), 2**63 - 1),
    colour=st.none() | st.sampled_from(Colour),
)


@given(st.lists(LINES))
def test_every_line_comes_back(lines: list[Line]) -> None:
    serde = serde_of(list[Line])
    assert serde.deserialize("t", serde.serialize("t", lines)) == lines


@given(st.binary() | st.from_regex(rb'\{"article": ?[^\x80-\xff]*\}', fullmatch=True))
def test_any_bytes_are_a_whole_value_or_an_error_of_serdes(data: bytes) -> None:
    for wanted in (Line, Customer, Shop, Parcel, Address, Point):
        serde = serde_of(wanted)
        try:
            found = serde.deserialize("t", data)
        except SerdeError:
            continue
        assert type(found) is (dict if wanted is Address else wanted)
        assert serde.deserialize("t", serde.serialize("t", found)) == found
