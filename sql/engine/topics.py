"""Topics: creates, deletes and describes topics of the broker."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker import concurrency
from broker.client.administration.values import NewTopic
from broker.client.cluster_admin import Admin
from broker.client.opening import Target, admin
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition
from sql.errors import StatementFailed


@dataclass(frozen=True, slots=True)
class TopicShape:
    """The size of a topic."""

    partitions: int
    replicas: int


class Topics:
    """The topics of a broker; any thread may call it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._opened: Admin | None = None
        self._lock = concurrency.Lock()

    @property
    def _administration(self) -> Admin:
        with self._lock:
            if self._opened is None:
                self._opened = admin(self._target, client_id="millstream-sql")
            return self._opened

    def close(self) -> None:
        """Close the client."""
        with self._lock:
            closing, self._opened = self._opened, None
        if closing is not None:
            closing.close()

    def shape(self, name: str) -> TopicShape | None:
        """The size of a topic; None if it does not exist."""
        return self._shape(self._administration, name)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """All topics, with the number of replicas of each partition."""
        names = self._administration.list_topics(include_internal=True)
        described = self._administration.describe_topics(names).values
        return {
            name: tuple(len(info.partitions[number].replicas) for number in sorted(info.partitions))
            for name, info in sorted(described.items())
        }

    def ensure(
        self,
        name: str,
        *,
        partitions: int | None,
        replicas: int | None,
        configs: Mapping[str, str] | None = None,
    ) -> TopicShape:
        """Create a topic if it does not exist; an existing one must have the required size."""
        result = self.shape(name)
        if result is None:
            self._create(self._administration, name, partitions, replicas, configs or {})
            result = self.shape(name)
            assert result is not None, "the topic was just created"
            return result
        check_size(name, result, partitions=partitions, replicas=replicas)
        return result

    def delete(self, name: str) -> None:
        """Delete a topic; a missing topic is ignored."""
        error = self._administration.delete_topics([name]).errors.get(name)
        if error is not None and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise StatementFailed(
                f"Could not delete the corresponding kafka topic: {name}: {error}"
            )

    def readers(self) -> dict[str, dict[str, int]]:
        """The consumers of each topic: groups, with the number of members that read it."""
        result: dict[str, dict[str, int]] = {}
        administration = self._administration
        groups = [each.group_id for each in administration.list_groups()]
        described = administration.describe_groups(groups).values if groups else {}
        for group_id, group in described.items():
            for member in group.members:
                for topic in {each.topic for each in member.partitions}:
                    counts = result.setdefault(topic, {})
                    counts[group_id] = counts.get(group_id, 0) + 1
        return result

    def offsets(self, group_id: str, topic: str) -> list[tuple[int, int, int, int]]:
        """(partition, first, end, committed) of a group in a topic; 0 if there is no commit."""
        administration = self._administration
        shape = self._shape(administration, topic)
        if shape is None:
            return []
        places = [TopicPartition(topic, number) for number in range(shape.partitions)]
        first = administration.list_offsets(dict.fromkeys(places, -2)).values
        end = administration.list_offsets(dict.fromkeys(places, -1)).values
        committed = administration.list_group_offsets(group_id, places).values
        return [
            (
                place.partition,
                first[place].offset,
                end[place].offset,
                committed[place].offset if place in committed else 0,
            )
            for place in places
            if place in first and place in end
        ]

    def _shape(self, administration: Admin, name: str) -> TopicShape | None:
        results = administration.describe_topics([name])
        try:
            info = results[name]
        except BrokerError as error:
            if error.code in (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.INVALID_TOPIC_EXCEPTION,
            ):
                return None
            raise
        if not info.partitions:
            return None
        return TopicShape(len(info.partitions), len(next(iter(info.partitions.values())).replicas))

    def _create(
        self,
        administration: Admin,
        name: str,
        partitions: int | None,
        replicas: int | None,
        configs: Mapping[str, str],
    ) -> None:
        new = NewTopic(
            name,
            -1 if partitions is None else partitions,
            -1 if replicas is None else replicas,
            configs,
        )
        error = administration.create_topics([new]).errors.get(name)
        if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise StatementFailed(
                f"Failed to create topic {name}: {error.message}", hint=error.hint
            )


def check_size(
    name: str, found: TopicShape, *, partitions: int | None, replicas: int | None
) -> None:
    """Refuse a topic whose size differs from that in the statement."""
    wrong = (partitions is not None and partitions != found.partitions) or (
        replicas is not None and replicas > 0 and replicas != found.replicas
    )
    if wrong:
        raise StatementFailed(
            f"A Kafka topic with the name '{name}' already exists, with different "
            "partition/replica configuration than required. "
            f"KSQL expects {partitions or found.partitions} partitions "
            f"(topic has {found.partitions}), and {replicas or found.replicas} replication factor "
            f"(topic has {found.replicas})."
        )
