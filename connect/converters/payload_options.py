"""The settings that affect JSON payloads, for both directions."""

from collections.abc import Callable
from dataclasses import dataclass

from connect.converters.compiled import Conversion, Convert
from connect.data import ConnectSchema, Type
from connect.errors import DataError


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """How decimals and maps are written, and whether null is replaced with the schema's default.

    Entries of a map whose keys are not strings are pairs, or objects with "key" and "value". A
    struct with the union's name represents its one value.
    """

    numeric_decimals: bool = False
    replace_null_with_default: bool = True
    entries_as_objects: bool = False
    union_name: str = ""

    def is_object(self, schema: ConnectSchema) -> bool:
        """Whether a map is a JSON object, because its keys are strings."""
        keys = schema.key_schema
        if keys is None:
            return True
        return keys.type is Type.STRING and not (self.entries_as_objects and keys.optional)

    def is_union(self, schema: ConnectSchema) -> bool:
        """Whether a struct represents its one value."""
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
    """The same function, with the conversion of null."""
    return lambda value: null() if value is None else convert(value)


def element_of(
    schema: ConnectSchema | None,
    options: PayloadOptions,
    make: Callable[[ConnectSchema, PayloadOptions], Conversion],
) -> Conversion:
    """The conversion of the elements of an array or map."""
    if schema is not None:
        return make(schema, options)

    def refuse(value: object) -> object:
        if value is not None:
            raise DataError("No schema defined for element of array or map")
        return None

    return Conversion(refuse)
