"""`millstream produce` and `consume` with the schemas of a registry."""

from collections.abc import Iterator

import orjson
import pytest
from click.testing import CliRunner

from broker.registry.registry import Registry
from broker.registry.server import RegistryServer
from broker.serde.schema.schema import Schema, SchemaKind
from millstream.__main__ import command_line
from tests.support.millstream_broker import MillstreamBroker

pytestmark = pytest.mark.slow

SCHEMAS = {
    "avro": Schema(
        '{"type": "record", "name": "Order", "fields": ['
        '{"name": "id", "type": "long"}, {"name": "photo", "type": "bytes", "default": "a"}]}'
    ),
    "json": Schema(
        '{"type": "object", "properties": {"id": {"type": "integer"}}}', SchemaKind.JSON
    ),
    "protobuf": Schema('syntax = "proto3"; message Order { int32 id = 1; }', SchemaKind.PROTOBUF),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The options that name a broker and its registry."""
    with (
        MillstreamBroker(tmp_path_factory.mktemp("broker")) as broker,
        Registry(broker.bootstrap) as registry,
        RegistryServer(registry, listen="127.0.0.1:0") as server,
    ):
        for name, schema in SCHEMAS.items():
            registry.register(f"{name}-value", schema)
        yield ["--bootstrap", broker.bootstrap, "--registry", server.url]


def run(*arguments: str, text: str = "", code: int = 0) -> str:
    result = CliRunner().invoke(command_line, arguments, input=text)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize(
    ("topic", "value"),
    [("avro", {"id": 7, "photo": "YQ=="}), ("json", {"id": 7}), ("protobuf", {"id": 7})],
)
def test_json_lines_become_records_of_the_latest_schema(
    places: list[str], topic: str, value: dict[str, object]
) -> None:
    run("produce", topic, "-F", "registry", *places, text='{"id": 7}\n')
    read = ("consume", topic, "-F", "registry", "--from-beginning", "--exit", "--json")
    assert orjson.loads(run(*read, *places))["value"] == value


def test_records_without_a_schema_are_shown_as_bytes(places: list[str]) -> None:
    run("produce", "plain", *places, text="text\n")
    read = ("consume", "plain", "-F", "registry", "--from-beginning", "--exit", "--json")
    assert orjson.loads(run(*read, *places))["value"] == "0x74657874"


def test_a_topic_without_a_schema_cannot_be_written(places: list[str]) -> None:
    output = run("produce", "unknown", "-F", "registry", *places, text="{}\n", code=2)
    assert "millstream schemas register unknown-value FILE" in output
