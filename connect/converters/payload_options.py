"""What settings change about JSON, and what both directions know of it."""

from collections.abc import Callable
from dataclasses import dataclass

from connect.converters.compiled import Conversion, Convert
from connect.data import ConnectSchema, Type
from connect.errors import DataError


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """How decimals and maps are written, and whether a null stands for its schema's default.

    Entries of a map whose keys are not strings are pairs, or objects of "key" and "value". A struct
    of the union's name stands for the one value that it has.
    """

    numeric_decimals: bool = False
    replace_null_with_default: bool = True
    entries_as_objects: bool = False
    union_name: str = ""

    def is_object(self, schema: ConnectSchema) -> bool:
        """Whether a map is an object, because its keys are strings."""
        keys = schema.key_schema
        if keys is None:
            return True
        return keys.type is Type.STRING and not (self.entries_as_objects and keys.optional)

    def is_union(self, schema: ConnectSchema) -> bool:
        """Whether a struct stands for the one value that it has."""
        return bool(self.union_name) and schema.name == self.union_name


# Types whose values are the same in Python and in JSON.
UNCHANGED = frozenset(
    {
        Type.INT8,
        Type.INT16,
        Type.INT32,
        Type.INT64,
        Type.FLOAT64,
        Type.BOOLEAN,
        Type.STRING,
    }
)


def or_null(convert: Convert, null: Callable[[], object]) -> Convert:
    """The same function, with what null becomes."""
    return lambda value: null() if value is None else convert(value)


def element_of(
    schema: ConnectSchema | None,
    options: PayloadOptions,
    make: Callable[[ConnectSchema, PayloadOptions], Conversion],
) -> Conversion:
    """What is done with the elements of an array or map."""
    if schema is not None:
        return make(schema, options)

    def refuse(value: object) -> object:
        if value is not None:
            raise DataError("No schema defined for element of array or map")
        return None

    return Conversion(refuse)
