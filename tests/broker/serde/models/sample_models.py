"""Models of each family with fields of each kind, and strategies of their values."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import attrs
import msgspec
import pydantic
from hypothesis import strategies as st

from broker.serde import DecimalDigits, Float32, Int32


class Colour(Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 0
    LARGE = 5


@dataclass(frozen=True)
class Card:
    number: str


@dataclass(frozen=True)
class Cash:
    coins: tuple[int, ...]


@dataclass
class Line:
    """What was bought."""

    article: str
    price: Annotated[Decimal, DecimalDigits(12, 3)]
    count: Annotated[int, Int32] = 1
    colour: Colour | None = None
    size: Size = Size.LARGE


@dataclass
class Node:
    name: str
    children: "list[Node]" = field(default_factory=list)
    parent: "Node | None" = None


@dataclass
class Order:
    """An order of a customer.

    It may have many lines.
    """

    id: int
    user: str
    paid: bool
    weight: float
    signature: bytes
    at: datetime
    day: date
    clock: time
    took: timedelta
    key: UUID
    lines: list[Line]
    by_name: dict[str, Line]
    tags: set[str] = field(default_factory=set)
    kind: Literal["web", "shop"] = "web"
    note: str | None = None
    due: date | None = None
    payment: Card | Cash | None = None
    rough: Annotated[float, Float32] = 0.5


class Visit(msgspec.Struct, rename="camel"):
    page_name: str
    at: datetime
    lines: list[Line] = []
    length: timedelta | None = None


class Customer(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName", description="as on the letters")
    born: date | None = None
    favourites: list[Line] = []


@attrs.define
class Parcel:
    weight: float
    lines: list[Line]
    sent: datetime | None = None


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Address(TypedDict):
    street: str
    floor: NotRequired[int]


@dataclass
class Everyone:
    visit: Visit
    customer: Customer
    parcel: Parcel
    point: Point
    address: Address


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LONGS = st.integers(-(2**63), 2**63 - 1)
TIMES = st.datetimes(timezones=st.just(UTC))
DAYS = st.dates()
SPANS = st.timedeltas(timedelta(days=-3_000_000), timedelta(days=3_000_000))
LINES = st.builds(
    Line,
    article=TEXT,
    price=st.decimals("-999999999.999", "999999999.999", places=3),
    count=st.integers(-(2**31), 2**31 - 1),
    colour=st.none() | st.sampled_from(Colour),
    size=st.sampled_from(Size),
)
ORDERS = st.builds(
    Order,
    id=LONGS,
    user=TEXT,
    paid=st.booleans(),
    weight=st.floats(allow_nan=False),
    signature=st.binary(max_size=30),
    at=TIMES,
    day=DAYS,
    clock=st.times(),
    took=SPANS,
    key=st.uuids(),
    lines=st.lists(LINES, max_size=3),
    by_name=st.dictionaries(TEXT, LINES, max_size=3),
    tags=st.sets(TEXT, max_size=3),
    kind=st.sampled_from(["web", "shop"]),
    note=st.none() | TEXT,
    due=st.none() | DAYS,
    payment=st.none()
    | st.builds(Card, TEXT)
    | st.builds(Cash, st.lists(LONGS, max_size=3).map(tuple)),
    rough=st.floats(width=32, allow_nan=False),
)
NODES = st.recursive(
    st.builds(Node, TEXT),
    lambda inner: st.builds(Node, TEXT, st.lists(inner, max_size=3), st.none() | inner),
    max_leaves=5,
)
EVERYONE = st.builds(
    Everyone,
    visit=st.builds(
        Visit,
        page_name=TEXT,
        at=TIMES,
        lines=st.lists(LINES, max_size=2),
        length=st.none() | SPANS,
    ),
    customer=st.builds(
        lambda name, born, favourites: Customer(fullName=name, born=born, favourites=favourites),
        TEXT,
        st.none() | DAYS,
        st.lists(LINES, max_size=2),
    ),
    parcel=st.builds(
        Parcel,
        weight=st.floats(allow_nan=False),
        lines=st.lists(LINES, max_size=2),
        sent=st.none() | TIMES,
    ),
    point=st.builds(Point, st.floats(allow_nan=False), st.floats(allow_nan=False)),
    address=st.fixed_dictionaries({"street": TEXT}, optional={"floor": LONGS}),
)
ORDER = Order(
    7,
    "ann",
    True,
    1.5,
    b"\0\xff",
    datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=UTC),
    date(2024, 2, 29),
    time(1, 2, 3, 4),
    timedelta(seconds=-5, microseconds=3),
    UUID(int=7),
    [Line("flour", Decimal("2.500"), 3, Colour.BLUE)],
    {"a": Line("bran", Decimal("0.125"))},
    {"x"},
)
