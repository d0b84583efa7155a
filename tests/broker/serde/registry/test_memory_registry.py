"""The registry that other tests stand on keeps the protocol's promises."""

import pytest

from broker.errors import RegistryError
from broker.serde.registry.api import RegisteredSchema, SchemaRegistry
from broker.serde.schema.schema import Schema
from tests.support.memory_registry import MemoryRegistry

STRING, LONG = Schema('"string"'), Schema('"long"')


def test_equal_schemas_share_an_id_and_versions_count_per_subject() -> None:
    registry: SchemaRegistry = MemoryRegistry()
    assert registry.register("a", STRING) == 1
    assert registry.register("a", LONG) == 2
    assert registry.register("b", LONG) == 2
    assert registry.register("a", STRING) == 1
    assert registry.schema(2) == LONG
    assert registry.version("a") == RegisteredSchema("a", 2, 2, LONG)
    assert registry.version("a", 1) == RegisteredSchema("a", 1, 1, STRING)
    assert registry.lookup("b", LONG) == RegisteredSchema("b", 1, 2, LONG)


def test_what_is_not_there_has_the_codes_of_a_registry() -> None:
    registry = MemoryRegistry()
    registry.register("a", STRING)
    with pytest.raises(RegistryError, match="nobody") as subject:
        registry.version("nobody")
    with pytest.raises(RegistryError) as version:
        registry.version("a", 2)
    with pytest.raises(RegistryError) as schema:
        registry.lookup("a", LONG)
    with pytest.raises(RegistryError) as schema_id:
        registry.schema(9)
    errors = [subject, version, schema, schema_id]
    assert [error.value.code for error in errors] == [40401, 40402, 40403, 40403]
