"""Joiner: the user's function of a join in one form, and the serdes of a join."""

from collections.abc import Callable
from typing import Any, cast

from broker.serde import Serde
from streams.processor import NodeContext
from streams.serdes import serde_or_default

# key, left value, right value, even if the user's function takes no key.
Joiner = Callable[[object, object, object], object]


def as_joiner(function: Callable[..., object], *, with_key: bool) -> Joiner:
    """The user's joiner(left, right), or joiner(key, left, right)."""
    if with_key:
        return function
    return lambda key, left, right: function(left, right)


def reversed_joiner(joiner: Joiner) -> Joiner:
    """The joiner for the other side of a join, whose own value is the right one."""
    return lambda key, own, other: joiner(key, other, own)


# Any: only the user's code knows the types of serdes.
def key_serde_or_default(context: NodeContext, serde: Serde[Any] | None) -> Serde[Any]:
    """The serde of a key, or the application's default."""
    return serde_or_default(serde, cast("Serde[Any]", context.setting("default_key_serde")))


def value_serde_or_default(context: NodeContext, serde: Serde[Any] | None) -> Serde[Any]:
    """The serde of a value, or the application's default."""
    return serde_or_default(serde, cast("Serde[Any]", context.setting("default_value_serde")))
