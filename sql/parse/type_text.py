"""Parses types: BIGINT, DECIMAL(4, 2), ARRAY<STRING>, STRUCT<a INT>.

type      := ARRAY < type > | MAP < type , type > | STRUCT < [field {, field}] >
           | name [( parameter {, parameter} )]
field     := name type
parameter := [-] whole number | STRING
"""

from sql.parse.reader import Reader
from sql.syntax.type_names import ArrayOf, MapOf, NamedType, StructOf, TypeSyntax


def read_type(reader: Reader) -> TypeSyntax:
    """Parse a type."""
    place = reader.position()
    opened = reader.next_word() in ("<", "<>") and reader.kind == "name"
    if not opened or reader.word not in ("ARRAY", "MAP", "STRUCT"):
        return _named(reader)
    reader.enter()
    what = reader.word
    reader.advance()
    result: TypeSyntax
    if what == "STRUCT":
        result = StructOf(_fields(reader), position=place)
    else:
        reader.expect("<")
        first = read_type(reader)
        if what == "ARRAY":
            result = ArrayOf(first, position=place)
        else:
            reader.expect(",")
            result = MapOf(first, read_type(reader), position=place)
        reader.expect(">")
    reader.leave(0)
    return result


def _fields(reader: Reader) -> tuple[tuple[str, TypeSyntax], ...]:
    if reader.accept("<>"):
        return ()
    reader.expect("<")
    if reader.accept(">"):
        return ()
    fields = [(reader.name(), read_type(reader))]
    while reader.accept(","):
        fields.append((reader.name(), read_type(reader)))
    if not reader.accept(">"):
        reader.fail(",", ">")
    return tuple(fields)


def _named(reader: Reader) -> NamedType:
    place = reader.position()
    name = reader.name()
    if not reader.accept("("):
        return NamedType(name, position=place)
    parameters = [_parameter(reader)]
    while reader.accept(","):
        parameters.append(_parameter(reader))
    if not reader.accept(")"):
        reader.fail(",", ")")
    numbers = tuple(each for each in parameters if each is not None)
    return NamedType(name, numbers, position=place)


def _parameter(reader: Reader) -> int | None:
    """Parse a number; VARCHAR(STRING) is the same as VARCHAR."""
    if reader.accept("STRING"):
        return None
    if reader.kind != "whole" and reader.word != "-":
        reader.fail("STRING", "whole")
    return reader.whole(negative=reader.accept("-"))
