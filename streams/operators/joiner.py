"""Joiner: the user's function of a join in one form, and the serdes that a join writes with."""

from collections.abc import Callable
from typing import Any, cast

from broker.serde import Serde
from streams.processor import NodeContext
from streams.serdes import serde_or_default

# key, left value, right value: whatever the user's function looks like.
Joiner = Callable[[object, object, object], object]


def as_joiner(function: Callable[..., object], *, with_key: bool) -> Joiner:
    """The user's joiner(left, right), or joiner(key, left, right)."""
    if with_key:
        return function
    return lambda key, left, right: function(left, right)


def reversed_joiner(joiner: Joiner) -> Joiner:
    """The same for the other side of a join, whose own value is the right one."""
    return lambda key, own, other: joiner(key, other, own)


# Any: which type a serde is for is known to the user's code only.
def key_serde_or_default(context: NodeContext, serde: Serde[Any] | None) -> Serde[Any]:
    """The serde of a key, or the application's default."""
    return serde_or_default(serde, cast("Serde[Any]", context.setting("default_key_serde")))


def value_serde_or_default(context: NodeContext, serde: Serde[Any] | None) -> Serde[Any]:
    """The serde of a value, or the application's default."""
    return serde_or_default(serde, cast("Serde[Any]", context.setting("default_value_serde")))
