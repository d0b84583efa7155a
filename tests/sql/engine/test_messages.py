"""Entities as JSON."""

from sql.datatypes import DecimalType
from sql.engine import entities as en
from sql.engine.fields import field_schema
from sql.engine.messages import plain_json
from sql.server.messages import TAGS, entity_json


def test_every_entity_has_a_tag_of_its_own() -> None:
    assert set(TAGS) == set(en.Entity.__args__)
    assert len(set(TAGS.values())) == len(TAGS)


def test_a_status_has_ksqldbs_shape() -> None:
    status = en.CurrentStatus(
        "CREATE ...;", "stream/`A`/create", en.CommandStatus("SUCCESS", "Stream created"), 3
    )
    assert entity_json(status) == {
        "@type": "currentStatus",
        "statementText": "CREATE ...;",
        "commandId": "stream/`A`/create",
        "commandStatus": {"status": "SUCCESS", "message": "Stream created", "queryId": None},
        "commandSequenceNumber": 3,
        "warnings": [],
    }


def test_types_of_columns_are_nested_objects() -> None:
    schema = en.FieldSchema("ARRAY", None, en.FieldSchema("STRING"))
    found = entity_json(en.TypesList("SHOW TYPES;", {"T": schema}))
    assert found["types"] == {
        "T": {
            "type": "ARRAY",
            "fields": None,
            "memberSchema": {"type": "STRING", "fields": None, "memberSchema": None},
        }
    }


def test_a_decimal_has_its_digits() -> None:
    assert plain_json(field_schema(DecimalType(9, 2))) == {
        "type": "DECIMAL",
        "fields": None,
        "memberSchema": None,
        "parameters": {"precision": 9, "scale": 2},
    }


def test_a_value_column_has_no_type_member() -> None:
    column = en.FieldInfo("A", en.FieldSchema("STRING"))
    key = en.FieldInfo("K", en.FieldSchema("STRING"), "KEY")
    details = en.QueryDetails(
        "q", "s", None, (key, column), (), (), "", "", {}, {"host": "RUNNING"}, "PUSH"
    )
    shown = entity_json(en.QueryDescription("EXPLAIN q;", details))["queryDescription"]
    assert [each.get("type") for each in shown["fields"]] == ["KEY", None]
    assert "type" not in shown["fields"][1]
    assert "state" not in shown
