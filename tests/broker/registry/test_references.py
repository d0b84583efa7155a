"""References: schemas that name others."""

import pytest

from broker.registry.registry import Registry
from broker.serde.schema.schema import Reference, Schema
from tests.broker.registry.examples import record, referring, refused


def test_references_are_resolved_in_the_order_of_dependence(registry: Registry) -> None:
    registry.register("a", record("x", name="A"))
    registry.register("b", referring("A", "a", 1, name="B"))
    top = referring("B", "b", 1, name="C")
    resolved = registry.resolve(top)
    assert list(resolved) == ["A", "B"]
    assert resolved["A"] == record("x", name="A").text
    assert registry.register("c", top) == 3
    assert registry.referenced_by("a", 1) == [2]
    assert registry.referenced_by("b") == [3]


def test_a_reference_to_nothing_is_refused(registry: Registry) -> None:
    message = (
        "Invalid schema of type AVRO, details: No schema reference found for subject "
        '"a" and version 1'
    )
    with refused(42201, message):
        registry.register("b", referring("A", "a", 1))
    with refused(42201):
        registry.resolve(referring("A", "a", 1))


def test_a_reference_to_the_latest_version_is_kept_as_that_version(registry: Registry) -> None:
    registry.register("a", record("x", name="A"))
    stored = registry.add("b", referring("A", "a", -1))
    assert stored.schema.references == (Reference("A", "a", 1),)
    assert registry.find("b", referring("A", "a", -1)) == stored
    registry.register("a", record("x", "y", name="A"))
    assert registry.add("b", referring("A", "a", -1)).version == 2


def test_references_lie_in_the_context_of_who_refers(registry: Registry) -> None:
    registry.register(":.c:a", record("x", name="A"))
    registry.register("other", record("y", name="A"))
    assert registry.register(":.c:b", referring("A", "a", 1)) == 2
    with refused(42201):
        registry.register("b", referring("A", "a", 1))
    assert registry.register("b", referring("A", ":.c:a", 1)) == 2
    assert registry.referenced_by(":.c:a", 1) == [2]


def test_what_is_referred_to_cannot_be_deleted(registry: Registry) -> None:
    registry.register("a", record("x", name="A"))
    registry.register("b", referring("A", "a", 1))
    message = (
        "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=a,version=1}."
    )
    with refused(42206, message):
        registry.delete_subject("a")
    with refused(42206, message):
        registry.delete_version("a", 1)
    registry.delete_subject("b")
    assert registry.referenced_by("a", 1) == []
    assert registry.delete_subject("a") == [1]
    # What is deleted softly can still be referred to, and read.
    assert registry.add("b", referring("A", "a", 1)).version == 2
    assert registry.schema(2).references == (Reference("A", "a", 1),)


def test_a_deleted_and_rewritten_reference_is_parsed_again(registry: Registry) -> None:
    registry.register("a", record("x", name="A"))
    outer = registry.add("b", referring("A", "a", 1))
    assert '"x"' in registry.parsed(outer).formatted("resolved")
    registry.delete_subject("b")
    registry.delete_subject("a")
    registry.delete_subject("a", permanent=True)
    registry.register("a", record("y", name="A"))
    assert '"y"' in registry.parsed(outer).formatted("resolved")


@pytest.mark.slow
def test_too_many_references_in_a_row_are_refused(registry: Registry) -> None:
    registry.register("s0", record("x", name="T0"))
    with refused(42201):
        for number in range(1, 100):
            registry.register(
                f"s{number}", referring(f"T{number - 1}", f"s{number - 1}", 1, name=f"T{number}")
            )
    assert 60 < len(registry.subjects()) < 70


def test_a_schema_without_references_resolves_to_nothing(registry: Registry) -> None:
    assert registry.resolve(Schema('"string"')) == {}
