"""Inline source code of simple aggregates, to avoid a call per row."""

from collections.abc import Sequence

from sql.datatypes import DOUBLE
from sql.functions.aggregates import Count, CountRows, Sum
from sql.functions.registry import Aggregator

# Aggregates whose result is their state.
_PLAIN = (Count, CountRows, Sum)


def add_code(aggregator: Aggregator, state: str, values: Sequence[str]) -> str | None:
    """The source of `add` for a state and the values of a row; None: it must be called."""
    match aggregator:
        case CountRows():
            return f"{state} + 1"
        case Count():
            return f"{state} if {values[0]} is None else {state} + 1"
        case Sum(state_type=type_) if type(aggregator) is Sum and type_ is DOUBLE:
            return f"{state} if {values[0]} is None else {state} + {values[0]}"
        case _:
            return None


def result_code(aggregator: Aggregator, state: str) -> str | None:
    """The source of `result` for a state; None: it must be called."""
    return state if type(aggregator) in _PLAIN else None
