"""The registry of cases."""

import pytest

from broker.errors import RegistryError
from broker.serde.schema.schema import Schema
from sql.testing.memory_registry import MemoryRegistry

INT, TEXT = Schema('"int"'), Schema('"string"')


def test_ids_count_from_one_and_equal_schemas_share_one() -> None:
    registry = MemoryRegistry()
    assert [registry.register("a", INT), registry.register("b", TEXT)] == [1, 2]
    assert registry.register("c", INT) == 1
    assert registry.schema(2) == TEXT


def test_ids_that_a_case_wants_are_not_given_again() -> None:
    registry = MemoryRegistry()
    registry.register_as("a", INT, 1)
    assert registry.register("b", TEXT) == 2
    assert registry.version("a").schema_id == 1


def test_versions_of_a_subject_are_counted() -> None:
    registry = MemoryRegistry()
    registry.register("a", INT)
    registry.register("a", TEXT)
    assert registry.version("a").version == 2
    assert registry.version("a", 1).schema == INT
    assert registry.lookup("a", TEXT).version == 2
    assert registry.has_subject("a")
    assert not registry.has_subject("b")


def test_what_is_not_there_is_refused_with_the_code_of_a_registry() -> None:
    registry = MemoryRegistry()
    registry.register("a", INT)
    for ask, code in (
        (lambda: registry.schema(9), 40403),
        (lambda: registry.version("b"), 40401),
        (lambda: registry.version("a", 7), 40402),
        (lambda: registry.lookup("a", TEXT), 40403),
    ):
        with pytest.raises(RegistryError) as caught:
            ask()
        assert caught.value.code == code
