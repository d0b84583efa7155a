"""Our range and round robin assignors divide exactly as Kafka's own do."""

import random
from pathlib import Path

import pytest

from broker.client.assignors import Assignor, MemberSubscription, RangeAssignor, RoundRobinAssignor
from broker.client.assignors.sticky import encode_previous
from broker.model import TopicPartition
from tests.support.apache_kafka import KafkaRelease, java_command, run_java

pytestmark = [pytest.mark.slow, pytest.mark.peer]

SOURCE = Path(__file__).parents[1] / "support" / "java" / "Assignors.java"
CASES = 400
TOPICS = ("a", "b", "c", "d-e")


def ask_java(release: KafkaRelease, lines: list[str]) -> list[str]:
    command = java_command(release.compile(SOURCE), "Assignors")
    return run_java(command, stdin="\n".join(lines) + "\n").splitlines()


def random_case(source: random.Random) -> tuple[dict[str, int], list[MemberSubscription]]:
    counts = {
        topic: source.randrange(1, 12)
        for topic in source.sample(TOPICS, source.randrange(1, len(TOPICS) + 1))
    }
    members = []
    for number in source.sample(range(30), source.randrange(1, 9)):
        topics = tuple(source.sample(TOPICS, source.randrange(len(TOPICS) + 1)))
        instance = f"i{source.randrange(100)}-{number}" if source.random() < 0.3 else None
        members.append(MemberSubscription(f"m{number}", topics, instance))
    return counts, members


def as_line(counts: dict[str, int], members: list[MemberSubscription]) -> str:
    described = " ".join(
        f"{member.member_id}:{member.instance_id or ''}:{','.join(member.topics)}"
        for member in members
    )
    return f"{' '.join(f'{topic}={count}' for topic, count in counts.items())}|{described}"


def our_answer(
    assignor: Assignor, counts: dict[str, int], members: list[MemberSubscription]
) -> str:
    assigned = assignor.assign(members, counts)
    return " ".join(
        f"{member_id}={','.join(sorted(map(str, assigned[member_id].partitions)))}"
        for member_id in sorted(assigned)
    )


@pytest.mark.parametrize("assignor", [RangeAssignor(), RoundRobinAssignor()])
def test_partitions_go_where_kafka_would_send_them(
    apache_kafka: KafkaRelease, assignor: Assignor
) -> None:
    source = random.Random(848)
    cases = [random_case(source) for _ in range(CASES)]
    answers = ask_java(apache_kafka, [f"{assignor.name}|{as_line(*case)}" for case in cases])
    assert len(answers) == CASES
    for case, expected in zip(cases, answers, strict=True):
        assert our_answer(assignor, *case) == expected, as_line(*case)


def test_sticky_members_write_the_user_data_that_kafka_writes(apache_kafka: KafkaRelease) -> None:
    held = [TopicPartition("a", 0), TopicPartition("a", 7), TopicPartition("a", 2)]
    (answer,) = ask_java(apache_kafka, [f"sticky|42|{' '.join(map(str, held))}"])
    assert answer == encode_previous(held, 42).hex()
