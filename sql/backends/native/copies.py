"""Copies of mutable values: lists, maps and structs, by their types."""

from collections.abc import Callable
from typing import Any

from sql.datatypes import ArrayType, DataType, MapType, StructType

# Any: a value of the type that the copy function is for.
Copy = Callable[[Any], Any]


def copying(type_: DataType) -> Copy | None:
    """The copy function for values of a type; None if they are immutable."""
    match type_:
        case ArrayType(element=element):
            return _of_list(copying(element))
        case MapType(value=value):
            return _of_map(copying(value))
        case StructType(fields=fields):
            return _of_struct({each.name: copying(each.type) for each in fields})
        case _:
            return None


def _of_list(element: Copy | None) -> Copy:
    if element is None:
        return lambda value: None if value is None else [*value]
    return lambda value: None if value is None else [element(each) for each in value]


def _of_map(element: Copy | None) -> Copy:
    if element is None:
        return lambda value: None if value is None else {**value}
    return lambda value: (
        None if value is None else {key: element(each) for key, each in value.items()}
    )


def _of_struct(fields: dict[str, Copy | None]) -> Copy:
    changing = {name: copy for name, copy in fields.items() if copy is not None}

    def copied(value: dict[str, object] | None) -> dict[str, object] | None:
        if value is None:
            return None
        result = {**value}
        for name, copy in changing.items():
            result[name] = copy(result.get(name))
        return result

    return copied
