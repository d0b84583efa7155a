"""What transforms work out of a schema is worked out once."""

from connect.api import Transformation
from connect.data import INT32, STRING, ConnectSchema, Struct, struct
from connect.records import SinkRecord
from connect.transforms.parts import PLANS_MAX, SchemaPlans
from tests.connect.transforms.cases import plugin

SETTINGS = {
    "Cast$Value": {"spec": "a:string"},
    "ExtractField$Value": {"field": "inner"},
    "Flatten$Value": {},
    "HeaderFrom$Value": {"fields": "a", "headers": "h", "operation": "move"},
    "HoistField$Value": {"field": "f"},
    "InsertField$Value": {"topic.field": "t"},
    "ReplaceField$Value": {"exclude": "a"},
    "SetSchemaMetadata$Value": {"schema.name": "n"},
    "TimestampConverter$Value": {"field": "s", "target.type": "unix", "format": "yyyy"},
}


def value_of(number: int) -> Struct:
    """A struct whose schema is equal to the others', but another object."""
    inner = struct("inner", {"x": STRING})
    schema = struct("outer", {"a": INT32, "s": STRING, "inner": inner})
    return Struct(schema, [number, "2024", Struct(inner, ["x"])])


def test_records_of_equal_schemas_get_one_and_the_same_schema() -> None:
    for name, settings in SETTINGS.items():
        transform = plugin(f"org.apache.kafka.connect.transforms.{name}")
        assert isinstance(transform, Transformation)
        transform.configure(settings)
        found = []
        for value in (value_of(1), value_of(2)):
            changed = transform.apply(SinkRecord("t", 0, None, None, value.schema, value, 0))
            assert changed is not None
            found.append(changed.value_schema)
        assert found[0] is found[1], name


def test_plans_of_schemas_seen_long_ago_are_forgotten() -> None:
    made: list[ConnectSchema] = []

    def make(schema: ConnectSchema) -> int:
        made.append(schema)
        return len(made)

    plans = SchemaPlans(make)
    schemas = [struct(f"s{number}", {}) for number in range(PLANS_MAX + 1)]
    for schema in [*schemas, schemas[-1], schemas[0]]:
        plans.of(schema)
    assert made == [*schemas, schemas[0]]
