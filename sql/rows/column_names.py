"""struct_of: fields of a schema together, each under a name of its own."""

from collections.abc import Iterable

from broker.errors import SchemaError
from sql.datatypes import Field, StructType


def struct_of(fields: Iterable[Field], where: str) -> StructType:
    """The struct of fields; names that became equal in upper case are refused."""
    found: dict[str, Field] = {}
    for each in fields:
        if each.name in found:
            raise SchemaError(
                f'two fields of {where} are named "{each.name}" when their case is ignored',
                hint="refer to the schema by its id: then names keep their case",
            )
        found[each.name] = each
    return StructType(tuple(found.values()))
