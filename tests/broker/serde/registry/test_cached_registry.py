"""CachedRegistry asks once, forgets what may change, and does not hammer; references resolve."""

import threading

import pytest

from broker.clock import ManualClock
from broker.errors import RegistryError, SchemaError
from broker.serde.registry import CachedRegistry
from broker.serde.registry.references import DEPTH_MAX, resolve_references
from broker.serde.schema.schema import Reference, Schema
from tests.support.memory_registry import MemoryRegistry

STRING, LONG = Schema('"string"'), Schema('"long"')


def test_ids_schemas_and_versions_are_asked_for_once() -> None:
    behind = MemoryRegistry()
    registry = CachedRegistry(behind)
    for _ in range(3):
        assert registry.register("a", STRING) == 1
        assert registry.schema(1) == STRING
        assert registry.lookup("a", STRING).version == 1
        assert registry.version("a", 1).schema_id == 1
    assert behind.calls == ["register a", "schema 1", "lookup a", "version a 1"]


def test_the_latest_version_is_asked_for_again_after_a_while() -> None:
    behind, clock = MemoryRegistry(), ManualClock()
    registry = CachedRegistry(behind, latest_ms=1_000, clock=clock)
    behind.register("a", STRING)
    assert registry.version("a").schema == STRING
    behind.register("a", LONG)
    clock.advance(999)
    assert registry.version("a").schema == STRING
    clock.advance(1)
    assert registry.version("a").schema == LONG


def test_ones_own_registration_is_the_latest_at_once() -> None:
    registry = CachedRegistry(MemoryRegistry())
    registry.register("a", STRING)
    assert registry.version("a").schema == STRING
    registry.register("a", LONG)
    assert registry.version("a").schema == LONG


def test_failures_are_remembered_briefly() -> None:
    behind, clock = MemoryRegistry(), ManualClock()
    registry = CachedRegistry(behind, failures_ms=500, clock=clock)
    for _ in range(3):
        with pytest.raises(RegistryError) as found:
            registry.schema(1)
        assert found.value.code == 40403
    assert behind.calls == ["schema 1"]
    behind.register("a", STRING)
    clock.advance(500)
    assert registry.schema(1) == STRING


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    behind = MemoryRegistry()
    for subject in "abc":
        behind.register(subject, STRING)
    registry = CachedRegistry(behind, capacity=2)
    behind.calls.clear()
    for subject in ("a", "b", "a", "c", "a", "b"):
        registry.version(subject, 1)
    assert behind.calls == ["version a 1", "version b 1", "version c 1", "version b 1"]
    registry.forget()
    registry.version("a", 1)
    assert behind.calls[-1] == "version a 1"


def test_a_registry_that_remembers_is_not_wrapped_again() -> None:
    registry = CachedRegistry(MemoryRegistry())
    assert CachedRegistry.of(registry) is registry


def test_threads_may_ask_at_the_same_time() -> None:
    registry = CachedRegistry(MemoryRegistry(), capacity=5)
    found: list[int] = []

    def ask(start: int) -> None:
        for number in range(200):
            subject = f"s{(start + number) % 10}"
            found.append(registry.register(subject, STRING))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 800


def test_references_come_after_what_they_refer_to_themselves() -> None:
    registry = MemoryRegistry()
    registry.register("a", Schema("A"))
    registry.register("b", Schema("B", references=(Reference("a.x", "a", 1),)))
    both = (Reference("b.x", "b", 1), Reference("a.x", "a", 1))
    resolved = resolve_references(registry, Schema("C", references=both))
    assert list(resolved.items()) == [("a.x", "A"), ("b.x", "B")]


def test_references_may_not_go_on_for_ever() -> None:
    registry = MemoryRegistry()
    registry.register("s0", Schema("0"))
    for number in range(1, DEPTH_MAX + 3):
        before = Reference(f"n{number - 1}", f"s{number - 1}", 1)
        registry.register(f"s{number}", Schema(str(number), references=(before,)))
    with pytest.raises(SchemaError, match="deep"):
        resolve_references(registry, registry.version(f"s{DEPTH_MAX + 2}").schema)
