"""Pairs: what functions of users that give a key and a value must return.

A tuple of two, or a named one. A dict or a string of two, or a list, could be unpacked as well; but
then it is mostly the value itself, and the names of its fields would become keys and values.
"""

import inspect
from collections.abc import Callable

from streams.errors import StreamsError

Pair = tuple[object, object]


def checked_pair(given: object, function: Callable[..., object], kind: str) -> Pair:
    """What a function returned, if that is a pair; else an error that says which function it is.

    Called for values that are not a plain tuple, or cannot be unpacked into two.
    """
    if isinstance(given, tuple) and len(given) == 2:
        return given
    length = f" of {len(given)}" if isinstance(given, tuple) else ""
    raise StreamsError(
        f"{described(function)}, given to {kind}, must return a tuple (key, value), but returned "
        f"{_shortened(given)}, a {type(given).__name__}{length}",
        hint="return (key, value); map_values and flat_map_values leave the key as it is",
    )


def no_pairs(function: Callable[..., object]) -> StreamsError:
    """What to raise when a function for flat_map returned None."""
    return StreamsError(
        f"{described(function)}, given to flat_map, must return a list of tuples (key, value), but "
        "returned None",
        hint="return an empty list for a record without results",
    )


def described(function: Callable[..., object]) -> str:
    """A function of the user, and where it is written."""
    plain: object = inspect.unwrap(function)
    while not hasattr(plain, "__code__") and hasattr(plain, "func"):  # functools.partial
        plain = inspect.unwrap(plain.func)
    if not hasattr(plain, "__qualname__"):
        plain = type(plain).__call__  # an object that can be called
    name = getattr(plain, "__qualname__", None) or repr(plain)
    code = getattr(plain, "__code__", None)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def _shortened(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 100 else text[:100] + "..."
