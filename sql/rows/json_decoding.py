"""Decodes JSON to rows, with a fast and a careful path.

The fast path decodes directly into the columns' types. It only knows the names of fields that were
seen before, including their case, and fails for everything else. The careful path finds fields in
any case, coerces values and raises the errors for users; it adds the names to the fast path.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import DecimalException
from typing import Annotated, Any, Never

import msgspec
from msgspec.structs import astuple

from sql.datatypes import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    STRING,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    Primitive,
    StructType,
)
from sql.numeric_types import INTEGER_RANGES
from sql.rows.json_coercions import coercion_of, decode_json, exact_number, fields_coercion, refusal
from sql.rows.mismatch import Mismatch
from sql.rows.row_format import Row

# Ever new names must not cause a new decoder for each record.
LEARNING_MAX = 8
IGNORED_NAMES_MAX = 256
# Errors of the fast path; ValueError includes Mismatch and invalid UTF-8.
GIVING_UP = (msgspec.MsgspecError, ValueError, DecimalException, RecursionError)
PYTHON_TYPES: dict[Primitive, type] = {BOOLEAN: bool, DOUBLE: float, STRING: str, BYTES: bytes}


class JsonRowDecoder:
    """Decodes objects that have a field for each column."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self._coerce = fields_coercion(self._columns)
        self._positions = {each.name: index for index, each in enumerate(columns)}
        self._finishers = [
            (index, coercion_of(each.type))
            for index, each in enumerate(columns)
            if _needs_care(each.type)
        ]
        self._learned = 0
        # The name of each column's field in the data, and names of other fields.
        self._names = [each.name for each in columns]
        self._ignored: set[str] = set()
        self._decode_object = self._prepared()
        # From bytes to the row, None for JSON's null; Mismatch if it is invalid.
        self.decode = self._decode_and_finish if self._finishers else self._decode

    def decode_chunk(self, data: Sequence[bytes]) -> list[Row | None]:
        """The rows of many JSON strings."""
        if self._finishers:
            return list(map(self.decode, data))
        rows: list[Row | None] = []
        waiting = iter(data)
        while len(rows) < len(data):
            try:
                # Rows before a value on which the fast path fails are already in the list.
                rows.extend(map(astuple, map(self._decode_object, waiting)))
            except GIVING_UP:
                rows.append(self._decode_carefully(data[len(rows)]))
        if self._ignored:
            count = len(self._columns)
            return [None if row is None else row[:count] for row in rows]
        return rows

    def _decode(self, data: bytes) -> Row | None:
        try:
            row = astuple(self._decode_object(data))
            return row[: len(self._columns)] if self._ignored else row
        except GIVING_UP:
            return self._decode_carefully(data)

    def _decode_and_finish(self, data: bytes) -> Row | None:
        try:
            values = list(astuple(self._decode_object(data))[: len(self._columns)])
            for index, finish in self._finishers:
                if values[index] is not None:
                    values[index] = finish(values[index])
            return tuple(values)
        except GIVING_UP:
            return self._decode_carefully(data)

    def _decode_carefully(self, data: bytes) -> Row | None:
        found = decode_json(data)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise refusal(found, "object with a field for each column")
        try:
            row = tuple(self._coerce(found))
        except RecursionError:
            raise Mismatch("it is nested too deeply") from None
        if self._learned < LEARNING_MAX:
            self._learn(found)
        return row

    def _prepared(self) -> Callable[[bytes], msgspec.Struct]:
        """The decoder of the fast path, for the names known so far."""
        wanted = self._object_type()
        if wanted is None:
            return _give_up
        hook = exact_number if self._finishers else None
        return msgspec.json.Decoder(wanted, float_hook=hook).decode

    def _object_type(self) -> type[msgspec.Struct] | None:
        """The type of objects with exactly the known names; None if there is no such type."""
        if any(
            each.upper() != each and each.upper() in self._positions for each in self._positions
        ):
            return None  # one field may be the value of two columns
        # Any: annotations have no common type.
        fields: list[tuple[str, Any, Any]] = []
        for index, column in enumerate(self._columns):
            wanted = object if _needs_care(column.type) else _checked_type(column.type)
            fields.append((f"column{index}", wanted, None))
        rename = {f"column{index}": name for index, name in enumerate(self._names)}
        for index, name in enumerate(sorted(self._ignored)):
            # Not msgspec.Raw, which accepts invalid UTF-8, unlike the careful path.
            fields.append((f"ignored{index}", object, None))
            rename[f"ignored{index}"] = name
        try:
            return msgspec.defstruct(
                "KnownFields", fields, rename=rename, forbid_unknown_fields=True, gc=False
            )
        except ValueError:
            return None  # names with quotes or control characters

    def _learn(self, seen: Mapping[str, object]) -> None:
        """Add the names of an object's fields to the fast path."""
        names, ignored = list(self._names), set(self._ignored)
        for name in seen:
            index = self._positions.get(name, self._positions.get(name.upper()))
            if index is None:
                ignored.add(name)
            elif names[index] in seen and names[index] != name:
                return  # two spellings in one object: only the careful path handles this
            else:
                names[index] = name
        if (names, ignored) == (self._names, self._ignored) or len(ignored) > IGNORED_NAMES_MAX:
            return
        self._learned += 1
        self._names, self._ignored = names, ignored
        self._decode_object = self._prepared()


def single_decoder(data_type: DataType) -> Callable[[bytes], Row]:
    """A function that decodes an unwrapped column's value; JSON's null is a row with null."""
    coercion = coercion_of(data_type)
    decode: Callable[[bytes], object]
    if _needs_care(data_type):
        decode = _give_up
    else:
        decode = msgspec.json.Decoder(_checked_type(data_type), float_hook=exact_number).decode

    def decode_single(data: bytes) -> Row:
        try:
            return (decode(data),)
        except GIVING_UP:
            pass
        found = decode_json(data)
        try:
            return (None if found is None else coercion(found),)
        except RecursionError:
            raise Mismatch("it is nested too deeply") from None

    return decode_single


def _give_up(data: bytes) -> Never:
    raise Mismatch("this needs care")


def _needs_care(data_type: DataType) -> bool:
    """Whether msgspec alone cannot decode a type: exact decimals, and fields in any case."""
    match data_type:
        case Primitive():
            return False
        case DecimalType() | StructType():
            return True
        case ArrayType(element):
            return _needs_care(element)
        case MapType(_, value):
            return _needs_care(value)


# Any: annotations have no common type.
def _checked_type(data_type: DataType) -> Any:
    """The nullable type, as msgspec validates it."""
    match data_type:
        case Primitive():
            if data_type in INTEGER_RANGES:
                low, high = INTEGER_RANGES[data_type]
                return Annotated[int, msgspec.Meta(ge=low, le=high)] | None
            return PYTHON_TYPES[data_type] | None
        case ArrayType(element):
            return list[_checked_type(element)] | None  # type: ignore[misc]
        case MapType(_, value):
            return dict[str, _checked_type(value)] | None  # type: ignore[misc]
    raise AssertionError(data_type)
