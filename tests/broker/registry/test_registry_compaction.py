"""A topic that the broker compacts again and again says the same as one that it does not."""

from random import Random

import pytest

from broker.broker import Broker
from broker.client import admin
from broker.client.administration.values import NewTopic
from broker.errors import RegistryError
from broker.model import TopicPartition
from broker.registry.registry import Registry
from broker.registry.values import StoredSchema
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from tests.broker.registry.examples import record

SUBJECTS = ("a", "b", ":.c:a")
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1500",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "0",
}


def change(registry: Registry, random: Random) -> None:
    """One request of any kind; it may be refused."""
    subject = random.choice(SUBJECTS)
    try:
        match random.randrange(6):
            case 0 | 1 | 2:
                registry.register(subject, record(random.choice("uvwxyz")))
            case 3:
                registry.delete_subject(subject, permanent=random.random() < 0.5)
            case 4:
                registry.delete_version(
                    subject, random.randrange(1, 9), permanent=random.random() < 0.5
                )
            case _:
                registry.set_level(subject, random.choice(list(CompatibilityLevel)))
    except RegistryError as error:
        if error.status >= 500:
            raise


def spend_an_id(registry: Registry, name: str) -> None:
    """Give the highest id away and lose it again, then write enough to have it compacted."""
    registry.register("gone", record(name))
    registry.delete_subject("gone")
    registry.delete_subject("gone", permanent=True)
    for _ in range(20):
        registry.set_level("a", CompatibilityLevel.NONE)


def known(registry: Registry) -> tuple[list[StoredSchema], list[object]]:
    """All that a registry can be asked."""
    levels: list[object] = [registry.level(subject, default_to_global=True) for subject in SUBJECTS]
    ids = [registry.max_id(), registry.max_id(subject=":.c:"), *registry.contexts()]
    return registry.all_schemas(prefix=":*:", deleted=True), levels + ids


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_compaction_changes_nothing_that_can_be_asked(
    broker: Broker, topic: str, seed: int
) -> None:
    random = Random(seed)
    with admin(broker) as administration:
        administration.create_topics([NewTopic(topic, 1, 1, COMPACTED)]).all()
    storage = broker.state.storage
    for number in range(6):
        with Registry(broker, topic=topic) as registry:
            for _ in range(25):
                change(registry, random)
            spend_an_id(registry, f"gone{number}")
            before = known(registry)
        while storage.compact_one():
            pass
        with Registry(broker, topic=topic) as registry:
            assert known(registry) == before
    assert storage.cleaned_offsets[TopicPartition(topic, 0)] > 100
