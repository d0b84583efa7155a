"""Paths to fields: a name (V1), or names with dots between them (V2).

total                  the field "total"
order.total            the field "total" of "order"; with V1, the field "order.total"
`order.total`          the field "order.total", also with V2
a.`b\\`.c`.d            a backslash before a backtick that is followed by a dot keeps it
"""

from collections.abc import Mapping
from dataclasses import dataclass

from connect.config_def import CaseInsensitiveValidString, ConfigDef, ConfigType, Importance
from connect.data import ConnectSchema, Field, Struct, Type
from connect.errors import ConfigError, DataError
from connect.transforms.parts import require_map, require_struct

NESTED = "nested field access"


def with_field_syntax(definition: ConfigDef) -> ConfigDef:
    """Add the setting for the syntax of field names."""
    return definition.define(
        "field.syntax.version",
        ConfigType.STRING,
        "V1",
        validator=CaseInsensitiveValidString("V1", "V2"),
        importance=Importance.HIGH,
        doc="The syntax of field names: V1 for a name, V2 for a path to a nested "
        "field, with names separated by dots and backticks around names that "
        "contain dots.",
    )


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The names on the path to a field."""

    before: tuple[str, ...]
    last: str

    @classmethod
    def parse(cls, text: str, version: str) -> "FieldPath":
        """Parse a path in one of the two syntaxes."""
        if version.upper() == "V1":
            return cls((), text)
        if not text:
            raise ConfigError("the field path is empty", hint="set a field name")
        *before, last = _steps(text)
        return cls(tuple(before), last)

    def field_of(self, schema: ConnectSchema) -> Field | None:
        """The field at the path in a struct's schema."""
        for name in self.before:
            field = _field(schema, name)
            if field is None:
                return None
            schema = field.schema
        return _field(schema, self.last)

    def value_in_struct(self, struct: Struct, *, replace_null: bool) -> object:
        """The value at the path; null if the path ends earlier."""
        for name in self.before:
            if name not in struct.schema.positions:
                return None
            inner = struct[name]
            if inner is None:
                return None
            struct = require_struct(inner, NESTED)
        if self.last not in struct.schema.positions:
            return None
        return struct.get(self.last, with_default=replace_null)

    def value_in_map(self, mapping: Mapping[str, object]) -> object:
        """The value at the path in data without a schema."""
        for name in self.before:
            inner = mapping.get(name)
            if inner is None:
                return None
            mapping = require_map(inner, NESTED)
        return mapping.get(self.last)


def _field(schema: ConnectSchema, name: str) -> Field | None:
    if schema.type is not Type.STRUCT:
        raise DataError("Cannot look up fields on non-struct type")
    return schema.field(name)


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    place = 0
    while place < len(path):
        if path[place] == "`":
            step, place = _quoted(path, place)
        else:
            step, dot, _ = path[place:].partition(".")
            place += len(step) + len(dot)
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return steps


def _quoted(path: str, opening: int) -> tuple[str, int]:
    """The name between backticks, and where the next step begins.

    A closing backtick is followed by a dot or ends the path; others belong to the name.
    """
    name, start = "", opening + 1
    closing = path.find("`", start)
    while closing >= 0:
        escaped = path[closing - 1] == "\\"
        if closing == len(path) - 1:
            if escaped:
                break
            return name + path[start:closing], closing + 1
        if path[closing + 1] == ".":
            if not escaped:
                return name + path[start:closing], closing + 2
            name += path[start : closing - 1] + "`"
            start = closing + 1
        closing = path.find("`", closing + 1)
    raise ConfigError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick "
        f"at position {opening} to escape it"
    )
