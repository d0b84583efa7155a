"""Deleting softly and for good."""

from broker.registry.registry import Registry
from broker.registry.values import Mode
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from tests.broker.registry.examples import record, refused


def test_a_subject_is_deleted_softly_then_for_good(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.register("a", record("x", "y"))
    with refused(40405, "Subject 'a' was not deleted first before being permanently deleted"):
        registry.delete_subject("a", permanent=True)
    assert registry.delete_subject("a") == [1, 2]
    with refused(40404, "Subject 'a' was soft deleted.Set permanent=true to delete permanently"):
        registry.delete_subject("a")
    with refused(40401):
        registry.versions("a")
    assert registry.versions("a", deleted=True) == [1, 2]
    assert registry.schema(2) == record("x", "y")
    assert registry.subjects_of(2) == []
    assert registry.subjects_of(2, deleted=True) == ["a"]
    assert registry.delete_subject("a", permanent=True) == [1, 2]
    with refused(40403, "Schema 2 not found"):
        registry.schema(2)
    with refused(40401, "Subject 'a' not found."):
        registry.delete_subject("a", permanent=True)


def test_a_version_is_deleted_softly_then_for_good(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.register("a", record("x", "y"))
    with refused(
        40407, "Subject 'a' Version 1 was not deleted first before being permanently deleted"
    ):
        registry.delete_version("a", 1, permanent=True)
    assert registry.delete_version("a", 1) == 1
    with refused(
        40406, "Subject 'a' Version 1 was soft deleted.Set permanent=true to delete permanently"
    ):
        registry.delete_version("a", 1)
    with refused(40402, "Version 1 not found."):
        registry.stored("a", 1)
    assert registry.stored("a", 1, deleted=True).deleted
    assert registry.delete_version("a", 1, permanent=True) == 1
    with refused(40402):
        registry.delete_version("a", 1, permanent=True)
    with refused(40401):
        registry.delete_version("b", 1)
    with refused(42202):
        registry.delete_version("b", -2)
    assert registry.delete_version("a") == 2


def test_registering_what_was_deleted_softly_gives_its_id_and_a_new_version(
    registry: Registry,
) -> None:
    registry.register("a", record("x"))
    registry.register("a", record("x", "y"))
    registry.delete_subject("a")
    again = registry.add("a", record("x"))
    assert (again.schema_id, again.version) == (1, 3)
    # The version that the id had before is no longer needed.
    assert registry.versions("a", deleted=True) == [2, 3]


def test_versions_start_again_and_ids_do_not_after_a_permanent_delete(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.delete_subject("a")
    registry.delete_subject("a", permanent=True)
    again = registry.add("a", record("x"))
    assert (again.schema_id, again.version) == (2, 1)


def test_a_deleted_version_is_neither_compared_with_nor_found(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.delete_version("a", 1)
    with refused(40401):
        registry.find("a", record("x"))
    assert registry.find("a", record("x"), deleted=True).version == 1
    assert registry.check("a", record("z")) == []


def test_settings_go_with_the_last_version(registry: Registry) -> None:
    for subject in ("a", "b"):
        registry.register(subject, record("x"))
        registry.set_level(subject, CompatibilityLevel.FULL)
        registry.set_mode(subject, Mode.READWRITE)
    registry.delete_subject("a")
    registry.delete_version("b", 1)
    for subject in ("a", "b"):
        with refused(40408):
            registry.level(subject)
        with refused(40409):
            registry.mode(subject)
