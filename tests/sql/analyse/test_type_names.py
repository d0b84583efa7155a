"""Names of types stand for types."""

import pytest

from sql.analyse.type_names import DEPTH_MAX, data_type
from sql.datatypes import INT, ArrayType, DataType
from sql.errors import StatementFailed
from sql.parse import parse_type
from sql.syntax.type_names import ArrayOf, NamedType, TypeSyntax


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("int", "INTEGER"),
        ("VARCHAR", "STRING"),
        ("varchar(7)", "STRING"),
        ("DECIMAL(5, 2)", "DECIMAL(5, 2)"),
        ("MAP<STRING, ARRAY<DATE>>", "MAP<STRING, ARRAY<DATE>>"),
        ("STRUCT<a INT, `b` PLACES>", "STRUCT<`A` INTEGER, `b` ARRAY<INTEGER>>"),
        ("STRUCT<>", "STRUCT<>"),
    ],
)
def test_names(text: str, shown: str) -> None:
    assert str(data_type(parse_type(text), {"PLACES": ArrayType(INT)})) == shown


@pytest.mark.parametrize(
    ("syntax", "message"),
    [
        (NamedType("SHAPE"), "Cannot resolve unknown type: SHAPE"),
        (NamedType("INT", (3,)), "INT has no parameters"),
        (NamedType("DECIMAL"), "DECIMAL needs a precision and a scale"),
        (NamedType("DECIMAL", (0, 0)), "DECIMAL precision must be >= 1: DECIMAL(0,0)"),
        (NamedType("DECIMAL", (2, -1)), "DECIMAL scale must be >= 0"),
        (NamedType("DECIMAL", (2, 3)), "DECIMAL precision must be >= scale: DECIMAL(2,3)"),
        (NamedType("DECIMAL", (2**31, 3)), "has an invalid precision or scale"),
    ],
)
def test_other_names_are_refused(syntax: TypeSyntax, message: str) -> None:
    with pytest.raises(StatementFailed) as failure:
        data_type(syntax, {})
    assert message in failure.value.message


def test_fields_have_different_names() -> None:
    with pytest.raises(StatementFailed, match="Duplicate field names"):
        data_type(parse_type("STRUCT<a INT, A STRING>"), {})


def test_types_are_not_nested_without_end() -> None:
    syntax: TypeSyntax = NamedType("INT")
    for _ in range(DEPTH_MAX + 1):
        syntax = ArrayOf(syntax)
    with pytest.raises(StatementFailed, match="levels deep"):
        data_type(syntax, {})


@pytest.mark.parametrize(
    ("grown", "message"),
    [("STRUCT<a T, b T>", "fields and elements"), ("ARRAY<T>", "levels deep")],
)
def test_types_of_types_do_not_grow_without_end(grown: str, message: str) -> None:
    def grow(type_: DataType, times: int) -> DataType:
        return type_ if times == 0 else grow(data_type(parse_type(grown), {"T": type_}), times - 1)

    with pytest.raises(StatementFailed, match=message):
        grow(INT, 2 * DEPTH_MAX)
