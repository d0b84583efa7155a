"""Pairs: checks the results of user functions that must return a key and a value.

A tuple of two is required, possibly a named one. A dict, string or list of two could be unpacked as
well, but it is usually the value itself, and its field names would become keys and values.
"""

import inspect
from collections.abc import Callable

from streams.errors import StreamsError

Pair = tuple[object, object]


def checked_pair(given: object, function: Callable[..., object], kind: str) -> Pair:
    """Return the result of a function if it is a pair; otherwise raise an error with the function.

    Called for results that are not a plain tuple, or cannot be unpacked into two.
    """
    if isinstance(given, tuple) and len(given) == 2:
        return given
    length = f" of {len(given)}" if isinstance(given, tuple) else ""
    raise StreamsError(
        f"{described(function)}, passed to {kind}, must return a tuple (key, value), but returned "
        f"{_shortened(given)}, a {type(given).__name__}{length}",
        hint="return (key, value); map_values and flat_map_values leave the key as it is",
    )


def no_pairs(function: Callable[..., object]) -> StreamsError:
    """The error for a function of flat_map that returned None."""
    return StreamsError(
        f"{described(function)}, passed to flat_map, must return a list of tuples (key, value), "
        "but returned None",
        hint="return an empty list for a record without results",
    )


def described(function: Callable[..., object]) -> str:
    """A function of the user, with its location."""
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
