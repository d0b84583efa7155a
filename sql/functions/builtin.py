"""The functions that every query knows: all families in one registry."""

from functools import cache

from sql.functions.registry import Family, FunctionRegistry

FAMILIES: tuple[Family, ...] = ()


@cache
def builtin_functions() -> FunctionRegistry:
    """All built-in functions; the same registry each time."""
    return FunctionRegistry(FAMILIES)
