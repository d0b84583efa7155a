"""ElectLeaders and ListPartitionReassignments: one node leads everything, nothing is reassigned."""

from functools import partial

from broker.coordinator.parts import Parts, each
from broker.errors import ErrorCode
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.topics import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def elect_leaders(
    state: BrokerState, request: ElectLeadersRequest, context: RequestContext
) -> Parts[ElectLeadersResponse]:
    """Every partition already has its leader; a request for all partitions reports only changes."""
    results = []
    for asked in request.topic_partitions or ():
        found = yield from each(asked.partitions, partial(_election, state, asked.topic))
        results.append(ReplicaElectionResult(asked.topic, found))
        yield
    return ElectLeadersResponse(replica_election_results=results)


def _election(state: BrokerState, topic: str, number: int) -> PartitionResult:
    topic_partition = TopicPartition(topic, number)
    if state.partitions.get(topic_partition) is None:
        return PartitionResult(
            number,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f'partition "{topic_partition}" does not exist',
        )
    return PartitionResult(
        number, ErrorCode.ELECTION_NOT_NEEDED, "the leader is already the preferred replica"
    )


def list_partition_reassignments(
    state: BrokerState, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Always empty."""
    return ListPartitionReassignmentsResponse(error_message=None)


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments,
}
