"""Results from responses with one error code per item."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from broker.client.administration.values import Results
from broker.client.answers import code_of
from broker.errors import BrokerError, ErrorCode

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Item = TypeVar("Item")


def error_for(value: int, what: str, message: str | None = None) -> BrokerError | None:
    """The error of an item; None if it succeeded."""
    code = code_of(value)
    if code is ErrorCode.NONE:
        return None
    reason = message or code.name.lower().replace("_", " ")
    return BrokerError(code, f"{what}: {reason}")


def collect(
    items: Iterable[tuple[K, Item, BrokerError | None]], read: Callable[[Item], V]
) -> Results[K, V]:
    """The values of the items that succeeded, the errors of the others."""
    values: dict[K, V] = {}
    errors: dict[K, BrokerError] = {}
    for key, item, error in items:
        if error is None:
            values[key] = read(item)
        else:
            errors[key] = error
    return Results(values, errors)
