"""Conversion of the values of rows to Arrow arrays and back."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from sql.backends.spark.column_types import spark_type
from sql.datatypes import ArrayType, DataType, MapType, StructType

# Arrow's types and arrays are Any in this module: the library has no type hints.
Turn = Callable[[Any], Any]  # for values that are not null


def arrow_type(data_type: DataType) -> Any:
    """The Arrow type of a column in Spark's batches."""
    return to_arrow_type(spark_type(data_type), timezone="UTC")


class ColumnValues:
    """The values of a column: a list in Python, an array in Arrow."""

    def __init__(self, data_type: DataType) -> None:
        self.type = arrow_type(data_type)
        self._to_arrow = _pairs_of_maps(data_type)
        self._to_python = _maps_of_pairs(data_type)

    def array(self, values: Sequence[object]) -> Any:
        """The values as an array."""
        return pa.array(_turned(self._to_arrow, values), self.type)

    def values(self, array: Any) -> list[object]:
        """The values as a list."""
        return list(_turned(self._to_python, array.to_pylist()))


def _turned(turn: Turn | None, values: Sequence[object]) -> Sequence[object]:
    if turn is None:
        return values
    return [None if each is None else turn(each) for each in values]


def _pairs_of_maps(data_type: DataType) -> Turn | None:
    """Arrow represents a map as a list of pairs."""
    return _inside(data_type, _pairs_of_maps, lambda value: list(value.items()))


def _maps_of_pairs(data_type: DataType) -> Turn | None:
    """Arrow returns a map as a list of pairs."""
    return _inside(data_type, _maps_of_pairs, dict)


def _inside(
    data_type: DataType, turn_of: Callable[[DataType], Turn | None], turn_map: Turn
) -> Turn | None:
    """A function that converts the maps in values of a type; None if there are none."""
    match data_type:
        case MapType(value=value):
            return _map_turn(turn_of(value), turn_map, to_pairs=turn_map is not dict)
        case ArrayType(element=element):
            turn = turn_of(element)
            return None if turn is None else lambda values: _turned(turn, values)
        case StructType(fields=fields):
            turns = {each.name: turn for each in fields if (turn := turn_of(each.type))}
            return _struct_turn(turns) if turns else None
        case _:
            return None


def _map_turn(turn: Turn | None, turn_map: Turn, *, to_pairs: bool) -> Turn:
    if turn is None:
        return turn_map

    def turn_all(found: Any) -> Any:
        pairs = [
            (key, None if value is None else turn(value))
            for key, value in (found.items() if to_pairs else found)
        ]
        return pairs if to_pairs else dict(pairs)

    return turn_all


def _struct_turn(turns: dict[str, Turn]) -> Turn:
    def turn_fields(found: dict[str, object]) -> dict[str, object]:
        changed = dict(found)
        for name, turn in turns.items():
            if changed.get(name) is not None:
                changed[name] = turn(changed[name])
        return changed

    return turn_fields
