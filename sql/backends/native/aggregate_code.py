"""The source of aggregates that are simple enough to be written out, without a call per row."""

from collections.abc import Sequence

from sql.datatypes import DOUBLE
from sql.functions.aggregates import Counting, CountingRows, Summing
from sql.functions.registry import Aggregator

# Their results are their states.
_PLAIN = (Counting, CountingRows, Summing)


def add_code(aggregator: Aggregator, state: str, values: Sequence[str]) -> str | None:
    """What `add` computes of a state and the values of a row; None: it must be called."""
    match aggregator:
        case CountingRows():
            return f"{state} + 1"
        case Counting():
            return f"{state} if {values[0]} is None else {state} + 1"
        case Summing(state_type=type_) if type(aggregator) is Summing and type_ is DOUBLE:
            return f"{state} if {values[0]} is None else {state} + {values[0]}"
        case _:
            return None


def result_code(aggregator: Aggregator, state: str) -> str | None:
    """What `result` computes of a state; None: it must be called."""
    return state if type(aggregator) in _PLAIN else None
