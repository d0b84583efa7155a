"""The registry against a model of dicts, with restarts between any two steps."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from broker.broker import Broker
from broker.errors import RegistryError
from broker.registry.registry import Registry
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Schema
from tests.broker.registry.examples import record

SUBJECTS = ("a", "b", ":.c:a")
SCHEMAS = tuple(record(*fields) for fields in ("x", "xy", "y", ""))
LEVELS = (CompatibilityLevel.NONE, CompatibilityLevel.FULL)


class Model:
    """Subjects as dicts of versions: id, schema and whether it is deleted."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, tuple[int, Schema, bool]]] = {}
        self.levels: dict[str, CompatibilityLevel] = {}
        self.max_ids: dict[str, int] = {}

    def live(self, subject: str) -> list[int]:
        """Versions that are not deleted."""
        found = self.subjects.get(subject, {})
        return sorted(version for version in found if not found[version][2])

    def register(self, subject: str, schema: Schema) -> tuple[int, int]:
        """The id and the version that a schema must get."""
        found = self.subjects.setdefault(subject, {})
        for version in reversed(self.live(subject)):
            if found[version][1] == schema:
                return found[version][0], version
        version = max(found, default=0) + 1
        schema_id = self._id(subject, schema)
        for old in [each for each in found if found[each][0] == schema_id and found[each][2]]:
            del found[old]
        found[version] = (schema_id, schema, False)
        return schema_id, version

    def _id(self, subject: str, schema: Schema) -> int:
        context = subject.rpartition(":")[0]
        for name, versions in self.subjects.items():
            for schema_id, known, _ in versions.values():
                if known == schema and name.rpartition(":")[0] == context:
                    return schema_id
        self.max_ids[context] = self.max_ids.get(context, 0) + 1
        return self.max_ids[context]

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int] | int:
        """The versions that go, or the code of the refusal."""
        found = self.subjects.get(subject, {})
        live = self.live(subject)
        if not found:
            return 40401
        if permanent:
            return 40405 if live else sorted(self.subjects.pop(subject))
        if not live:
            return 40404
        for version in live:
            self._mark_deleted(subject, version)
        self.levels.pop(subject, None)
        return live

    def delete_version(self, subject: str, version: int, *, permanent: bool) -> int:
        """The version that goes, or the code of the refusal."""
        found = self.subjects.get(subject, {})
        if not found:
            return 40401
        if version not in found:
            return 40402
        if permanent:
            if not found[version][2]:
                return 40407
            del found[version]
            if not found:
                del self.subjects[subject]
            return version
        if found[version][2]:
            return 40406
        self._mark_deleted(subject, version)
        if not self.live(subject):
            self.levels.pop(subject, None)
        return version

    def _mark_deleted(self, subject: str, version: int) -> None:
        schema_id, schema, _ = self.subjects[subject][version]
        self.subjects[subject][version] = (schema_id, schema, True)


@contextmanager
def code_of() -> Iterator[list[object]]:
    """Collects an answer, or the code of the refusal instead of it."""
    answer: list[object] = []
    try:
        yield answer
    except RegistryError as error:
        answer.append(error.code)


class RegistryMachine(RuleBasedStateMachine):
    """Any requests in any order, and registries that come and go."""

    broker: Broker

    @initialize()
    def start(self) -> None:
        self.topic = f"_schemas-{uuid.uuid4().hex[:12]}"
        self.model = Model()
        self.registries = [Registry(self.broker, topic=self.topic)]
        self.registry.start()

    @property
    def registry(self) -> Registry:
        """The one that was started last."""
        return self.registries[-1]

    @rule(subject=st.sampled_from(SUBJECTS), schema=st.sampled_from(SCHEMAS))
    def register(self, subject: str, schema: Schema) -> None:
        stored = self.registry.add(subject, schema)
        assert (stored.schema_id, stored.version) == self.model.register(subject, schema)

    @rule(subject=st.sampled_from(SUBJECTS), permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        with code_of() as answer:
            answer.append(self.registry.delete_subject(subject, permanent=permanent))
        assert answer == [self.model.delete_subject(subject, permanent=permanent)]

    @rule(subject=st.sampled_from(SUBJECTS), version=st.integers(1, 5), permanent=st.booleans())
    def delete_version(self, subject: str, version: int, permanent: bool) -> None:
        with code_of() as answer:
            answer.append(self.registry.delete_version(subject, version, permanent=permanent))
        assert answer == [self.model.delete_version(subject, version, permanent=permanent)]

    @rule(subject=st.sampled_from(SUBJECTS), level=st.sampled_from(LEVELS))
    def set_level(self, subject: str, level: CompatibilityLevel) -> None:
        self.registry.set_level(subject, level)
        self.model.levels[subject] = level

    @rule()
    def restart(self) -> None:
        self.registry.close()
        self.registries.append(Registry(self.broker, topic=self.topic))
        self.registry.start()

    @rule()
    def take_over(self) -> None:
        """As after a kill: nobody closed the old one, and it must not write any more."""
        self.registries.append(Registry(self.broker, topic=self.topic))
        self.registry.start()
        with pytest.raises(RegistryError) as refusal:
            self.registries[-2].set_level("z", CompatibilityLevel.NONE)
        assert refusal.value.code == 50004

    @invariant()
    def both_know_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        known = {
            (stored.subject, stored.version): (stored.schema_id, stored.schema, stored.deleted)
            for stored in self.registry.all_schemas(prefix=":*:", deleted=True)
        }
        assert known == {
            (subject, version): expected
            for subject, versions in self.model.subjects.items()
            for version, expected in versions.items()
        }
        for subject, version in known:
            schema_id, schema, _ = known[subject, version]
            context = subject[: subject.rfind(":") + 1]
            assert self.registry.schema(schema_id, subject=context) == schema
        for subject in SUBJECTS:
            with code_of() as answer:
                answer.append(self.registry.level(subject))
            assert answer == [self.model.levels.get(subject, 40408)]

    def teardown(self) -> None:
        for each in getattr(self, "registries", ()):
            each.close()


@pytest.mark.slow
def test_a_registry_is_a_dict_of_subjects_that_survives_restarts(broker: Broker) -> None:
    class Machine(RegistryMachine):
        """The machine on the broker of these tests."""

    Machine.broker = broker
    # Each step asks a broker: a quarter of the examples is as much as an ordinary run can wait for.
    examples = settings.default.max_examples // 4  # type: ignore[union-attr]
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=examples, stateful_step_count=30)
    )
