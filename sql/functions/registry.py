"""Functions: what a name stands for, its overloads, and how families declare them.

A family's module makes a `Family` and declares each overload with a signature:

    strings = Family("STRING")

    @strings.scalar("LPAD(text STRING, length INT, padding STRING) -> STRING",
                    "Fills a text on its left up to a length.")
    def lpad(text: str, length: int, padding: str) -> str | None: ...

An implementation gets the Python values of broker/schema/datatypes.py, positionally, and returns
one; lambdas come as Python functions, interval units as their upper-case names. Any null argument
makes the result null without a call, unless `nulls=True`. Whatever it raises makes the column null
and is logged. Where the result's type depends on the arguments' (decimals), `result_type` gives it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sql.datatypes import DataType
from sql.functions.signatures import Signature

# Any: implementations take and give values of the types that their signatures name.
Implementation = Callable[..., Any]
ResultType = Callable[[tuple[DataType, ...]], DataType]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One overload of a function of a row's values."""

    signature: Signature
    call: Implementation
    nulls: bool = False  # whether it wants to be called with nulls
    result_type: ResultType | None = None
    # Whether two calls with the same arguments may differ (RANDOM, UUID, the clock).
    volatile: bool = False


class Aggregator(Protocol):
    """An aggregate at work; states are values of `state_type`, so that they can be stored."""

    @property
    def state_type(self) -> DataType:
        """The type of its states."""
        ...

    @property
    def result_type(self) -> DataType:
        """The type of its results."""
        ...

    # Any: states and values have the types that the properties and the signature name.
    def initial(self) -> Any:
        """The state of no rows."""
        ...

    def add(self, state: Any, *values: Any) -> Any:
        """The state with one row more; it may change and return the state it got."""
        ...

    def merge(self, left: Any, right: Any) -> Any:
        """The state of two sessions that became one."""
        ...

    def result(self, state: Any) -> Any:
        """The value of a state."""
        ...


class UndoableAggregator(Aggregator, Protocol):
    """An aggregate that can also take a row back: usable on tables."""

    def undo(self, state: Any, *values: Any) -> Any:
        """The state with one row less."""
        ...


# Makes an aggregator from the types of all arguments and the values of the literal ones at the end
# of the call, as the signature's `constants` says how many.
MakeAggregator = Callable[[tuple[DataType, ...], tuple[object, ...]], Aggregator]


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    """One overload of a function of many rows; its last `constants` parameters are literals."""

    signature: Signature
    make: MakeAggregator
    constants: int = 0
    undoable: bool = False


@dataclass(frozen=True, slots=True)
class TableOverload:
    """One overload of a function that gives several rows; the signature's result is one row's."""

    signature: Signature
    call: Implementation  # gives a list, or None for no rows
    nulls: bool = False
    result_type: ResultType | None = None


Overload = Scalar | AggregateOverload | TableOverload


@dataclass(slots=True)
class Function:
    """All overloads of a name; they are all of one kind."""

    name: str
    category: str
    description: str
    overloads: list[Overload] = field(default_factory=list)
    author: str = "Millstream"
    version: str = ""
