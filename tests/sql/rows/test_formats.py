"""Row formats by name."""

import pytest

from broker.errors import SchemaError
from broker.serde.schema.avro_schema import parse_avro
from broker.serde.schema.schema import SchemaKind
from sql.datatypes import INT, Column
from sql.rows.formats import FORMATS, format_of
from sql.rows.row_format import RowOptions


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NONE", None),
        ("DELIMITED", None),
        ("JSON", None),
        ("JSON_SR", SchemaKind.JSON),
        ("AVRO", SchemaKind.AVRO),
        ("PROTOBUF", SchemaKind.PROTOBUF),
        ("PROTOBUF_NOSR", None),
        ("KAFKA", None),
    ],
)
def test_each_format_knows_its_name_and_the_kind_of_its_schemas(
    name: str, kind: SchemaKind | None
) -> None:
    found = format_of(name.lower())
    assert found.name == name
    if kind is None:
        with pytest.raises(SchemaError, match=f'format "{name}" does not use a schema registry'):
            found.schema_of([Column("A", INT)], RowOptions())
    else:
        assert found.schema_of([Column("A", INT)], RowOptions()).kind is kind


def test_an_unknown_format_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(SchemaError, match='unknown format "FOO"') as caught:
        format_of("FOO")
    assert caught.value.hint == f"formats are {', '.join(sorted(FORMATS))}"


@pytest.mark.parametrize("name", ["NONE", "DELIMITED", "JSON", "KAFKA"])
def test_formats_without_a_registry_find_no_columns_in_schemas(name: str) -> None:
    with pytest.raises(SchemaError, match=f'format "{name}" does not use a schema registry'):
        format_of(name).columns_of(parse_avro('"int"', {}), RowOptions())
