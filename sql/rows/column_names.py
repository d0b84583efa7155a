"""struct_of: the struct of a schema's fields, whose names must be unique."""

from collections.abc import Iterable

from broker.errors import SchemaError
from sql.datatypes import Field, StructType


def struct_of(fields: Iterable[Field], where: str) -> StructType:
    """The struct of fields; names that are equal when their case is ignored are refused."""
    found: dict[str, Field] = {}
    for each in fields:
        if each.name in found:
            raise SchemaError(
                f'two fields of {where} are named "{each.name}" when their case is ignored',
                hint="refer to the schema by its id: then names keep their case",
            )
        found[each.name] = each
    return StructType(tuple(found.values()))
