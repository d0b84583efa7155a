"""SQL types of Python's type hints.

    str STRING    int BIGINT    float DOUBLE    bool BOOLEAN    bytes BYTES
    list[T] ARRAY<T>    dict[K, V] MAP<K, V>    Decimal any DECIMAL    object any type
    Annotated[Decimal, Digits(10, 2)] DECIMAL(10, 2)    a TypeVar T is any type, the same in a call
    Annotated[int, INT] or any other type of sql.datatypes: that type

With `| None`, a function is called with nulls.
"""

import inspect
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from sql.datatypes import BIGINT, BOOLEAN, BYTES, DOUBLE, STRING, DataType, DecimalType
from sql.functions.signatures import (
    AnyDecimal,
    AnyType,
    ArrayPattern,
    MapPattern,
    Parameter,
    Pattern,
    TypeVariable,
)

_PLAIN: dict[object, Pattern] = {
    str: STRING,
    int: BIGINT,
    float: DOUBLE,
    bool: BOOLEAN,
    bytes: BYTES,
    Decimal: AnyDecimal(),
    object: AnyType(),
    Any: AnyType(),
}


@dataclass(frozen=True, slots=True)
class Digits:
    """The precision and scale of a Decimal."""

    precision: int
    scale: int


def is_nullable(hint: object) -> bool:
    """Whether a hint allows None."""
    return get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)


def pattern_of(hint: object) -> Pattern:
    """The type of a hint; ValueError if there is none."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, TypeVar):
        return TypeVariable(hint.__name__)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(arguments)
    if is_nullable(hint) and len(arguments) == 2:
        (inner,) = (each for each in arguments if each is not NoneType)
        return pattern_of(inner)
    if origin is list:
        return ArrayPattern(pattern_of(arguments[0]))
    if origin is dict:
        return MapPattern(pattern_of(arguments[0]), pattern_of(arguments[1]))
    shown = getattr(hint, "__name__", None) or str(hint)
    raise ValueError(f"no SQL type matches the type hint {shown}")


def _annotated(arguments: tuple[Any, ...]) -> Pattern:  # Any: whatever was written there
    for each in arguments[1:]:
        if isinstance(each, Digits):
            return DecimalType(each.precision, each.scale)
        if isinstance(each, DataType):
            return each
    return pattern_of(arguments[0])


def parameter_of(parameter: inspect.Parameter, hints: dict[str, Any]) -> Parameter:
    """The SQL parameter of a Python parameter; ValueError if it is not supported."""
    name = parameter.name
    if name not in hints:
        raise ValueError(f'parameter "{name}" has no type hint, and there is no signature')
    if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
        raise ValueError(f'parameter "{name}" can only be given by its name')
    return Parameter(name, pattern_of(hints[name]), parameter.kind is parameter.VAR_POSITIONAL)
