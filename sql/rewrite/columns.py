"""Columns of expressions: which are used, and expressions on rows with other columns."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar, cast

from sql.datatypes import Column
from sql.expressions import ColumnValue, TypedExpression, column_values

V = TypeVar("V")


def columns_used(value: object) -> frozenset[int]:
    """The indexes of columns that expressions use; `value` may be a tuple of expressions."""
    return frozenset(each.index for each in column_values(value))


def on_row(value: V, places: Mapping[int, int], row: tuple[Column, ...]) -> V:
    """Expressions on another row, in which a column is at `places[old index]`."""
    return cast("V", _on_row(value, places, row))


def _on_row(value: object, places: Mapping[int, int], row: tuple[Column, ...]) -> object:
    if isinstance(value, ColumnValue):
        place = places[value.index]
        return ColumnValue(place, row[place].name, value.type)
    if isinstance(value, tuple):
        return tuple(_on_row(each, places, row) for each in value)
    if not isinstance(value, TypedExpression):
        return value
    before = {each.name: getattr(value, each.name) for each in fields(value)}
    after = {name: _on_row(each, places, row) for name, each in before.items()}
    changed = {name: each for name, each in after.items() if each != before[name]}
    # mypy compares the fields with those of each possible class.
    return replace(value, **changed) if changed else value  # type: ignore[arg-type]
