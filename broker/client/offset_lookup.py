"""Blocking lookup of offsets by time from the leaders of partitions."""

from collections.abc import Mapping

from broker.client.api import FoundOffset
from broker.client.cluster import Cluster
from broker.client.group_offsets import list_offsets_request, listed_offsets
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.fetch import ListOffsetsResponse


def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation: int = 0,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, FoundOffset]:
    """The first offset at or after each time; -1 if all records are older.

    Only partitions whose leader moves are retried.
    """
    found: dict[TopicPartition, FoundOffset] = {}

    def attempt(left_ms: int) -> dict[TopicPartition, FoundOffset]:
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, timestamp in timestamps.items():
            if tp not in found:
                leader = cluster.leader(tp, timeout_ms=left_ms)
                by_leader.setdefault(leader, {})[tp] = timestamp
        limit_ms = min(left_ms, cluster.config.request_timeout_ms)
        failure: BrokerError | None = None
        for leader, wanted in by_leader.items():
            request = list_offsets_request(wanted, isolation=isolation, timeout_ms=limit_ms)
            answer = cluster.ask(leader, request, ListOffsetsResponse, timeout_ms=limit_ms)
            for tp, offset in listed_offsets(answer).items():
                if isinstance(offset, ErrorCode):
                    reason = offset.name.lower().replace("_", " ")
                    failure = BrokerError(offset, f"cannot list the offset of {tp}: {reason}")
                    cluster.invalidate(tp.topic)
                else:
                    found[tp] = offset
        if failure is not None:
            cluster.refresh_soon()
            raise failure
        return found

    return cluster.retry("listing offsets", attempt, timeout_ms=timeout_ms)
