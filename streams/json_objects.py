"""Values of JSON as the types that were asked for: dataclasses, dates, enums, also nested."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

# Any: JSON's values in, values of any type out.
Build = Callable[[Any], Any]


def build_with(wanted: Any) -> Build:
    """A function that turns a value of JSON into one of a type; unknown types stay as they are."""
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return _object(wanted)
    if wanted in (datetime, date, time):
        parse: Build = wanted.fromisoformat
        return parse
    if wanted in (UUID, Decimal) or (isinstance(wanted, type) and issubclass(wanted, Enum)):
        make: Build = wanted
        return make
    return _container(wanted)


def _container(wanted: Any) -> Build:
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        others = [each for each in arguments if each is not NoneType]
        if len(others) == 1:
            inner = build_with(others[0])
            return lambda value: None if value is None else inner(value)
        return _same
    if origin in (list, set, frozenset, Sequence) and arguments:
        make, inner = (list if origin is Sequence else origin), build_with(arguments[0])
        return lambda value: make(map(inner, value))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        inner = build_with(arguments[0])
        return lambda value: tuple(map(inner, value))
    if origin is tuple and arguments:
        inners = [build_with(each) for each in arguments]
        return lambda value: tuple(inner(each) for inner, each in zip(inners, value, strict=True))
    if origin in (dict, Mapping) and len(arguments) == 2:
        inner = build_with(arguments[1])
        return lambda value: {key: inner(each) for key, each in value.items()}
    return _same


def _same(value: Any) -> Any:
    return value


def _object(cls: type) -> Build:
    fields: dict[str, Build] = {}

    def build(value: Any) -> Any:
        if not fields:
            # Late, because a class may have fields of its own kind.
            hints = get_type_hints(cls)
            names = [each.name for each in dataclasses.fields(cls) if each.init]
            fields.update((name, build_with(hints[name])) for name in names)
        return cls(**{name: fields[name](each) for name, each in value.items()})

    return build
