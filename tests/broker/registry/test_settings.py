"""Configurations and modes of subjects, contexts and everything."""

import pytest

from broker.registry.registry import Registry
from broker.registry.values import Mode, SubjectConfig
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from tests.broker.registry.examples import record, refused

FULL, NONE, BACKWARD, FORWARD = (
    CompatibilityLevel.FULL,
    CompatibilityLevel.NONE,
    CompatibilityLevel.BACKWARD,
    CompatibilityLevel.FORWARD,
)


def test_a_level_comes_from_the_subject_its_context_or_everything(registry: Registry) -> None:
    assert registry.level(None) is BACKWARD
    with refused(40408, "Subject 'a' does not have subject-level compatibility configured"):
        registry.level("a")
    assert registry.level("a", default_to_global=True) is BACKWARD
    registry.set_level(None, FULL)
    registry.set_level(":.c:", NONE)
    registry.set_level(":.c:b", FORWARD)
    assert registry.level("a", default_to_global=True) is FULL
    assert registry.level(":.c:a", default_to_global=True) is NONE
    assert registry.level(":.c:b", default_to_global=True) is FORWARD
    # Settings without a subject are the default context's; those of all contexts have a name.
    assert registry.level(":.d:a", default_to_global=True) is BACKWARD
    registry.set_level(":.__GLOBAL:", FORWARD)
    assert registry.level(":.d:a", default_to_global=True) is FORWARD


def test_deleting_a_level_goes_back_to_the_default(registry: Registry) -> None:
    registry.set_level("a", FULL)
    assert registry.delete_level("a") is FULL
    with refused(40401, "Subject 'a' not found."):
        registry.delete_level("a")
    registry.set_level(None, NONE)
    assert registry.delete_level(None) is NONE
    assert registry.level(None) is BACKWARD


def test_other_fields_of_a_configuration_are_kept_until_they_are_null(registry: Registry) -> None:
    registry.set_config("a", SubjectConfig(FULL, {"normalize": True, "owner": {"name": "shop"}}))
    registry.set_config("a", SubjectConfig(fields={"alias": "b", "owner": None}))
    assert registry.config("a") == SubjectConfig(FULL, {"normalize": True, "alias": "b"})
    assert registry.delete_config("a").fields == {"normalize": True, "alias": "b"}


def test_a_configuration_without_a_level_takes_the_next_one(registry: Registry) -> None:
    registry.set_level(None, FULL)
    registry.set_config("a", SubjectConfig(fields={"normalize": True}))
    assert registry.level("a") is FULL
    assert registry.config("a", default_to_global=True) == SubjectConfig(FULL, {"normalize": True})


def test_a_mode_comes_from_the_subject_its_context_or_everything(registry: Registry) -> None:
    assert registry.mode(None) is Mode.READWRITE
    with refused(40409, "Subject 'a' does not have subject-level mode configured"):
        registry.mode("a")
    registry.set_mode(None, Mode.READONLY)
    registry.set_mode("b", Mode.READWRITE)
    assert registry.mode("a", default_to_global=True) is Mode.READONLY
    with refused(42205, "Subject a in context  is in read-only mode"):
        registry.register("a", record("x"))
    assert registry.register("b", record("x")) == 1
    registry.set_mode(None, Mode.READONLY_OVERRIDE)
    with refused(42205):
        registry.register("b", record("y"))
    assert registry.delete_mode(None) is Mode.READONLY_OVERRIDE
    assert registry.delete_mode("b") is Mode.READWRITE
    with refused(40401):
        registry.delete_mode("b")


@pytest.mark.parametrize("mode", [Mode.READONLY, Mode.READONLY_OVERRIDE])
def test_nothing_is_changed_in_a_read_only_mode(registry: Registry, mode: Mode) -> None:
    registry.register("a", record("x"))
    registry.set_mode("a", mode)
    for change in (
        lambda: registry.register("a", record("y")),
        lambda: registry.delete_subject("a"),
        lambda: registry.delete_version("a", 1),
        lambda: registry.set_level("a", FULL),
    ):
        with refused(42205, "Subject a in context  is in read-only mode"):
            change()
    # What is there can be found, also by who would register it.
    assert registry.register("a", record("x")) == 1


def test_importing_wants_an_empty_subject_or_force(registry: Registry) -> None:
    registry.register("a", record("x"))
    for place in ("a", None):
        with refused(42205, "Cannot import since found existing subjects"):
            registry.set_mode(place, Mode.IMPORT)
    registry.set_mode("b", Mode.IMPORT)
    registry.set_mode("a", Mode.IMPORT, force=True)
    assert registry.add("a", record("y"), schema_id=9).version == 2


def test_importing_forgets_what_was_deleted_softly(registry: Registry) -> None:
    registry.register(":.c:a", record("x"))
    registry.register("a", record("x"))
    registry.delete_subject(":.c:a")
    registry.set_mode(":.c:", Mode.IMPORT)
    with refused(40403):
        registry.schema(1, subject=":.c:")
    assert registry.add(":.c:a", record("z"), schema_id=1, version=1).version == 1
    assert registry.schema(1) == record("x")
