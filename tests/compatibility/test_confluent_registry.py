"""confluent-kafka's SchemaRegistryClient against our registry: all that it can ask."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError

from broker import Broker
from broker.registry.registry import Registry
from broker.registry.server import RegistryServer

pytestmark = pytest.mark.slow

TOPICS = itertools.count()

AVRO = Schema('{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}', "AVRO")
AVRO_NEXT = Schema(
    '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"},'
    ' {"name": "note", "type": "string", "default": ""}]}',
    "AVRO",
)
AVRO_WRONG = Schema(
    '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"},'
    ' {"name": "note", "type": "string"}]}',
    "AVRO",
)
JSON = Schema('{"type": "object", "properties": {"id": {"type": "integer"}}}', "JSON")
JSON_WRONG = Schema('{"type": "object", "properties": {"id": {"type": "string"}}}', "JSON")
JSON_NEXT = Schema('{"type": "object", "properties": {"id": {"type": "number"}}}', "JSON")
PROTOBUF = Schema('syntax = "proto3"; message R { int64 id = 1; }', "PROTOBUF")
PROTOBUF_WRONG = Schema('syntax = "proto3"; message R { string id = 1; }', "PROTOBUF")
PROTOBUF_NEXT = Schema(
    'syntax = "proto3"; message R { int64 id = 1; string note = 2; }', "PROTOBUF"
)
EVERY_KIND = pytest.mark.parametrize(
    ("first", "following", "wrong"),
    [
        pytest.param(AVRO, AVRO_NEXT, AVRO_WRONG, id="AVRO"),
        pytest.param(JSON, JSON_NEXT, JSON_WRONG, id="JSON"),
        pytest.param(PROTOBUF, PROTOBUF_NEXT, PROTOBUF_WRONG, id="PROTOBUF"),
    ],
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_directory=str(tmp_path_factory.mktemp("registry"))) as broker:
        yield broker


@pytest.fixture
def url(broker: Broker) -> Iterator[str]:
    """The address of an empty registry."""
    with (
        Registry(broker, topic=f"schemas-{next(TOPICS)}") as registry,
        RegistryServer(registry, listen="127.0.0.1:0") as server,
    ):
        yield server.url


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as client:
        yield client


@EVERY_KIND
def test_schemas_are_registered_and_found(
    client: SchemaRegistryClient, first: Schema, following: Schema, wrong: Schema
) -> None:
    full = client.register_schema_full_response("s", first)
    assert (full.schema_id, full.version) == (1, 1)
    assert client.register_schema("s", following, normalize_schemas=True) == 2
    assert client.register_schema("other", first) == 1
    client.clear_caches()  # which hold the texts as they were sent
    found = client.get_schema(1, "s")
    assert found.schema_type == first.schema_type
    assert client.get_schema_by_guid(full.guid).schema_str == found.schema_str
    looked_up = client.lookup_schema("s", following, normalize_schemas=True)
    assert (looked_up.schema_id, looked_up.version, looked_up.subject) == (2, 2, "s")
    latest = client.get_latest_version("s")
    assert (latest.version, latest.schema_id) == (2, 2)
    assert client.get_version("s", 1).schema.schema_str == found.schema_str
    assert client.get_versions("s") == [1, 2]
    assert client.get_subjects() == ["other", "s"]
    assert client.get_subjects_by_schema_id(1) == ["other", "s"]
    places = client.get_schema_versions(1)
    assert [(place.subject, place.version) for place in places] == [("other", 1), ("s", 1)]


@EVERY_KIND
def test_compatibility_is_checked(
    client: SchemaRegistryClient, first: Schema, following: Schema, wrong: Schema
) -> None:
    assert client.test_compatibility("s", wrong)
    client.register_schema("s", first)
    assert client.test_compatibility("s", following)
    assert not client.test_compatibility("s", wrong)
    assert not client.test_compatibility("s", wrong, version=1)
    assert not client.test_compatibility_all_versions("s", wrong)
    with pytest.raises(SchemaRegistryError, match="incompatible") as refused:
        client.register_schema("s", wrong)
    assert refused.value.http_status_code == 409
    client.set_compatibility("s", "NONE")
    assert client.register_schema("s", wrong) == 2


@EVERY_KIND
def test_subjects_and_versions_are_deleted(
    client: SchemaRegistryClient, first: Schema, following: Schema, wrong: Schema
) -> None:
    client.register_schema("s", first)
    client.register_schema("s", following)
    assert client.delete_version("s", 1) == 1
    assert client.get_versions("s") == [2]
    assert client.delete_version("s", 1, permanent=True) == 1
    assert client.delete_subject("s") == [2]
    assert client.get_subjects() == []
    assert client.get_subjects(deleted=True) == ["s"]
    assert client.delete_subject("s", permanent=True) == [2]
    assert client.get_subjects(deleted=True) == []


def test_levels_are_set_and_read(client: SchemaRegistryClient) -> None:
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility(level="FULL")
    assert client.get_compatibility() == "FULL"
    with pytest.raises(SchemaRegistryError) as refused:
        client.get_compatibility("s")
    assert refused.value.error_code == 40408
    client.set_compatibility("s", "FORWARD")
    assert client.get_compatibility("s") == "FORWARD"
    with pytest.raises(SchemaRegistryError) as refused:
        client.set_compatibility("s", "SOMETIMES")
    assert refused.value.error_code == 42203


def test_configurations_are_set_read_and_deleted(client: SchemaRegistryClient) -> None:
    client.set_config(
        "s", ServerConfig(compatibility=ConfigCompatibilityLevel.FULL, compatibility_group="app")
    )
    found = client.get_config("s")
    assert found.compatibility_level == ConfigCompatibilityLevel.FULL
    assert found.compatibility_group == "app"
    assert client.delete_config("s").compatibility_level == ConfigCompatibilityLevel.FULL
    assert client.get_config().compatibility_level == ConfigCompatibilityLevel.BACKWARD


def test_modes_are_set_read_and_deleted(client: SchemaRegistryClient) -> None:
    assert client.get_global_mode() == "READWRITE"
    client.update_mode("s", "READONLY")
    assert client.get_mode("s") == "READONLY"
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("s", AVRO)
    assert refused.value.error_code == 42205
    assert client.delete_mode("s") == "READONLY"
    client.register_schema("s", AVRO)
    with pytest.raises(SchemaRegistryError, match="existing subjects"):
        client.update_global_mode("IMPORT")
    client.update_global_mode("IMPORT", force=True)
    assert client.get_global_mode() == "IMPORT"


def test_contexts_keep_their_schemas_apart(client: SchemaRegistryClient) -> None:
    client.register_schema("s", JSON)
    assert client.register_schema(":.far:s", AVRO) == 1
    assert client.get_contexts() == [".", ".far"]
    assert client.get_schema(1, ":.far:s").schema_type == "AVRO"
    assert client.get_schema(1, "s").schema_type == "JSON"
    assert client.get_subjects(subject_prefix=":.far:") == [":.far:s"]
    assert client.get_latest_version(":.far:s").subject == ":.far:s"


@pytest.mark.parametrize(
    ("item", "cart", "name"),
    [
        pytest.param(
            '{"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]}',
            '{"type": "record", "name": "Cart", "fields": [{"name": "item", "type": "Item"}]}',
            "Item",
            id="AVRO",
        ),
        pytest.param(
            '{"type": "string"}',
            '{"type": "object", "properties": {"item": {"$ref": "item.json"}}}',
            "item.json",
            id="JSON",
        ),
        pytest.param(
            'syntax = "proto3"; message Item { string sku = 1; }',
            'syntax = "proto3"; import "shop/item.proto"; message Cart { Item item = 1; }',
            "shop/item.proto",
            id="PROTOBUF",
        ),
    ],
)
def test_schemas_refer_to_each_other(
    client: SchemaRegistryClient,
    request: pytest.FixtureRequest,
    item: str,
    cart: str,
    name: str,
) -> None:
    kind = request.node.callspec.id
    client.register_schema("shop/item", Schema(item, kind))
    reference = SchemaReference(name=name, subject="shop/item", version=1)
    client.register_schema("cart", Schema(cart, kind, [reference]))
    found = client.get_latest_version("cart")
    assert [(each.name, each.subject, each.version) for each in found.schema.references] == [
        (name, "shop/item", 1)
    ]
    assert client.get_referenced_by("shop/item", 1) == [found.schema_id]
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_subject("shop/item")
    assert refused.value.error_code == 42206


def test_versions_are_found_by_their_metadata(client: SchemaRegistryClient) -> None:
    def with_metadata(schema: Schema, owner: str) -> Schema:
        properties = MetadataProperties({"owner": owner})
        metadata = Metadata(tags=None, properties=properties, sensitive=None)
        return Schema(schema.schema_str, schema.schema_type, metadata=metadata)

    client.register_schema("s", with_metadata(AVRO, "Ann & Bob"))
    client.register_schema("s", with_metadata(AVRO_NEXT, "Carl"))
    found = client.get_latest_with_metadata("s", {"owner": "Ann & Bob"})
    assert found.version == 1
    assert found.schema.metadata.properties.properties == {"owner": "Ann & Bob"}
    with pytest.raises(SchemaRegistryError) as refused:
        client.get_latest_with_metadata("s", {"owner": "Dora"})
    assert refused.value.error_code == 40403


def test_what_is_not_there_has_its_code(client: SchemaRegistryClient) -> None:
    asked: tuple[tuple[Callable[[], object], int], ...] = (
        (lambda: client.get_schema(7), 40403),
        (lambda: client.get_latest_version("none"), 40401),
        (lambda: client.get_version("none", 1), 40401),
        (lambda: client.lookup_schema("none", AVRO), 40401),
        (lambda: client.register_schema("s", Schema("{", "AVRO")), 42201),
        (lambda: client.get_associations_by_resource_name("t", "-", "topic", ["value"]), 404),
    )
    for ask, code in asked:
        with pytest.raises(SchemaRegistryError) as refused:
            ask()
        assert refused.value.error_code == code


def test_types_are_told(client: SchemaRegistryClient) -> None:
    assert client.get_schema_types() == ["JSON", "PROTOBUF", "AVRO"]


def test_a_url_may_name_a_context(url: str) -> None:
    with SchemaRegistryClient({"url": f"{url}/contexts/.far"}) as client:
        assert client.register_schema("s", AVRO) == 1
        assert client.get_latest_version("s").subject == ":.far:s"
        assert client.get_subjects() == [":.far:s"]
