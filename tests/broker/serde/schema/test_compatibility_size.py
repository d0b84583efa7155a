"""Types that are used again and again, also in circles: comparing takes time by their number."""

import json

import pytest

from broker.serde.schema.compatibility import avro, json_schema
from broker.serde.schema.compatibility.levels import CompatibilityLevel, incompatibilities
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.schema import Schema, SchemaKind

DEPTH = 30  # with two ways at each level, more paths than anybody can walk

pytestmark = pytest.mark.timeout(60)


def avro_levels(last: str, *, optional: bool, circle: bool, depth: int = 0) -> dict[str, object]:
    """Records that use the next one twice, down to a type; in a circle they name the first, too."""
    inner: object = last
    again: object = last
    if depth < DEPTH:
        inner = avro_levels(last, optional=optional, circle=circle, depth=depth + 1)
        again = f"R{depth + 1}"
    fields = {"a": inner, "b": again, **({"up": ["null", "R0"]} if circle else {})}
    return {
        "type": "record",
        "name": f"R{depth}",
        "fields": [
            {"name": name, "type": ["null", each] if optional and name != "up" else each}
            for name, each in fields.items()
        ],
    }


def json_levels(last: str, *, circle: bool) -> dict[str, object]:
    """Definitions that refer to the next one twice, down to a type."""
    up = {"up": {"$ref": "#/$defs/d0"}} if circle else {}
    levels = {
        f"d{depth}": {
            "properties": {name: {"$ref": f"#/$defs/d{depth + 1}"} for name in ("a", "b")} | up
        }
        for depth in range(DEPTH)
    }
    return {"$defs": {**levels, f"d{DEPTH}": {"type": last}}, "$ref": "#/$defs/d0"}


def found(kind: SchemaKind, old: dict[str, object], new: dict[str, object]) -> int:
    before, after = (parse_schema(Schema(json.dumps(each), kind), {}) for each in (old, new))
    return len(incompatibilities(CompatibilityLevel.BACKWARD, after, [before]))


@pytest.mark.parametrize("circle", [False, True])
@pytest.mark.parametrize("optional", [False, True])
def test_avro_records_that_are_used_twice_at_each_level(optional: bool, circle: bool) -> None:
    def levels(last: str) -> dict[str, object]:
        return avro_levels(last, optional=optional, circle=circle)

    assert found(SchemaKind.AVRO, levels("int"), levels("long")) == 0
    assert 0 < found(SchemaKind.AVRO, levels("int"), levels("string")) <= avro.DIFFERENCES_MAX


@pytest.mark.parametrize("circle", [False, True])
def test_json_definitions_that_are_used_twice_at_each_level(circle: bool) -> None:
    def levels(last: str) -> dict[str, object]:
        return json_levels(last, circle=circle)

    assert found(SchemaKind.JSON, levels("integer"), levels("number")) == 0
    count = found(SchemaKind.JSON, levels("integer"), levels("string"))
    assert 0 < count <= json_schema.DIFFERENCES_MAX
