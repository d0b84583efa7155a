"""Creating, changing and deleting topics and their records."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.part
class CreatableReplicaAssignment:
    """Part of CreateTopicsRequest."""

    partition_index: int = wire.int32()
    broker_ids: list[int] = wire.array("int32")


@wire.part
class CreatableTopicConfig:
    """Part of CreateTopicsRequest."""

    name: str = wire.string()
    value: str | None = wire.string(nullable="0+")


@wire.part
class CreatableTopic:
    """Part of CreateTopicsRequest."""

    name: str = wire.string()
    num_partitions: int = wire.int32()
    replication_factor: int = wire.int16()
    assignments: list[CreatableReplicaAssignment] = wire.array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = wire.array(CreatableTopicConfig)


@wire.request(ApiKey.CREATE_TOPICS, "2-7", flexible=5)
class CreateTopicsRequest:
    """CreateTopics request."""

    topics: list[CreatableTopic] = wire.array(CreatableTopic)
    timeout_ms: int = wire.int32(default=60000)
    validate_only: bool = wire.boolean("1+")


@wire.part
class CreatableTopicConfigs:
    """Part of CreateTopicsResponse."""

    name: str = wire.string("5+")
    value: str | None = wire.string("5+", nullable="5+")
    read_only: bool = wire.boolean("5+")
    config_source: int = wire.int8("5+", default=-1)
    is_sensitive: bool = wire.boolean("5+")


@wire.part
class CreatableTopicResult:
    """Part of CreateTopicsResponse."""

    name: str = wire.string()
    topic_id: bytes = wire.uuid("7+")
    error_code: int = wire.int16()
    error_message: str | None = wire.string("1+", nullable="0+")
    topic_config_error_code: int = wire.int16("5+", tag=0)
    num_partitions: int = wire.int32("5+", default=-1)
    replication_factor: int = wire.int16("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = wire.array(
        CreatableTopicConfigs, "5+", nullable="5+"
    )


@wire.response(ApiKey.CREATE_TOPICS, "2-7", flexible=5)
class CreateTopicsResponse:
    """CreateTopics response."""

    throttle_time_ms: int = wire.int32("2+")
    topics: list[CreatableTopicResult] = wire.array(CreatableTopicResult)


@wire.part
class DeleteTopicState:
    """Part of DeleteTopicsRequest."""

    name: str | None = wire.string("6+", default=None, nullable="6+")
    topic_id: bytes = wire.uuid("6+")


@wire.request(ApiKey.DELETE_TOPICS, "1-6", flexible=4)
class DeleteTopicsRequest:
    """DeleteTopics request."""

    topics: list[DeleteTopicState] = wire.array(DeleteTopicState, "6+")
    topic_names: list[str] = wire.array("string", "0-5")
    timeout_ms: int = wire.int32()


@wire.part
class DeletableTopicResult:
    """Part of DeleteTopicsResponse."""

    name: str | None = wire.string(nullable="6+")
    topic_id: bytes = wire.uuid("6+")
    error_code: int = wire.int16()
    error_message: str | None = wire.string("5+", default=None, nullable="5+")


@wire.response(ApiKey.DELETE_TOPICS, "1-6", flexible=4)
class DeleteTopicsResponse:
    """DeleteTopics response."""

    throttle_time_ms: int = wire.int32("1+")
    responses: list[DeletableTopicResult] = wire.array(DeletableTopicResult)


@wire.part
class CreatePartitionsAssignment:
    """Part of CreatePartitionsRequest."""

    broker_ids: list[int] = wire.array("int32")


@wire.part
class CreatePartitionsTopic:
    """Part of CreatePartitionsRequest."""

    name: str = wire.string()
    count: int = wire.int32()
    assignments: list[CreatePartitionsAssignment] | None = wire.array(
        CreatePartitionsAssignment, nullable="0+"
    )


@wire.request(ApiKey.CREATE_PARTITIONS, "0-3", flexible=2)
class CreatePartitionsRequest:
    """CreatePartitions request."""

    topics: list[CreatePartitionsTopic] = wire.array(CreatePartitionsTopic)
    timeout_ms: int = wire.int32()
    validate_only: bool = wire.boolean()


@wire.part
class CreatePartitionsTopicResult:
    """Part of CreatePartitionsResponse."""

    name: str = wire.string()
    error_code: int = wire.int16()
    error_message: str | None = wire.string(default=None, nullable="0+")


@wire.response(ApiKey.CREATE_PARTITIONS, "0-3", flexible=2)
class CreatePartitionsResponse:
    """CreatePartitions response."""

    throttle_time_ms: int = wire.int32()
    results: list[CreatePartitionsTopicResult] = wire.array(CreatePartitionsTopicResult)


@wire.part
class DeleteRecordsPartition:
    """Part of DeleteRecordsRequest."""

    partition_index: int = wire.int32()
    offset: int = wire.int64()


@wire.part
class DeleteRecordsTopic:
    """Part of DeleteRecordsRequest."""

    name: str = wire.string()
    partitions: list[DeleteRecordsPartition] = wire.array(DeleteRecordsPartition)


@wire.request(ApiKey.DELETE_RECORDS, "0-2", flexible=2)
class DeleteRecordsRequest:
    """DeleteRecords request."""

    topics: list[DeleteRecordsTopic] = wire.array(DeleteRecordsTopic)
    timeout_ms: int = wire.int32()


@wire.part
class DeleteRecordsPartitionResult:
    """Part of DeleteRecordsResponse."""

    partition_index: int = wire.int32()
    low_watermark: int = wire.int64()
    error_code: int = wire.int16()


@wire.part
class DeleteRecordsTopicResult:
    """Part of DeleteRecordsResponse."""

    name: str = wire.string()
    partitions: list[DeleteRecordsPartitionResult] = wire.array(DeleteRecordsPartitionResult)


@wire.response(ApiKey.DELETE_RECORDS, "0-2", flexible=2)
class DeleteRecordsResponse:
    """DeleteRecords response."""

    throttle_time_ms: int = wire.int32()
    topics: list[DeleteRecordsTopicResult] = wire.array(DeleteRecordsTopicResult)


@wire.part
class TopicPartitions:
    """Part of ElectLeadersRequest."""

    topic: str = wire.string()
    partitions: list[int] = wire.array("int32")


@wire.request(ApiKey.ELECT_LEADERS, "0-2", flexible=2)
class ElectLeadersRequest:
    """ElectLeaders request."""

    election_type: int = wire.int8("1+")
    topic_partitions: list[TopicPartitions] | None = wire.array(TopicPartitions, nullable="0+")
    timeout_ms: int = wire.int32(default=60000)


@wire.part
class PartitionResult:
    """Part of ElectLeadersResponse."""

    partition_id: int = wire.int32()
    error_code: int = wire.int16()
    error_message: str | None = wire.string(nullable="0+")


@wire.part
class ReplicaElectionResult:
    """Part of ElectLeadersResponse."""

    topic: str = wire.string()
    partition_result: list[PartitionResult] = wire.array(PartitionResult)


@wire.response(ApiKey.ELECT_LEADERS, "0-2", flexible=2)
class ElectLeadersResponse:
    """ElectLeaders response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16("1+")
    replica_election_results: list[ReplicaElectionResult] = wire.array(ReplicaElectionResult)


@wire.part
class ListPartitionReassignmentsTopics:
    """Part of ListPartitionReassignmentsRequest."""

    name: str = wire.string()
    partition_indexes: list[int] = wire.array("int32")


@wire.request(ApiKey.LIST_PARTITION_REASSIGNMENTS, "0", flexible=0)
class ListPartitionReassignmentsRequest:
    """ListPartitionReassignments request."""

    timeout_ms: int = wire.int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire.array(
        ListPartitionReassignmentsTopics, default=None, nullable="0+"
    )


@wire.part
class OngoingPartitionReassignment:
    """Part of ListPartitionReassignmentsResponse."""

    partition_index: int = wire.int32()
    replicas: list[int] = wire.array("int32")
    adding_replicas: list[int] = wire.array("int32")
    removing_replicas: list[int] = wire.array("int32")


@wire.part
class OngoingTopicReassignment:
    """Part of ListPartitionReassignmentsResponse."""

    name: str = wire.string()
    partitions: list[OngoingPartitionReassignment] = wire.array(OngoingPartitionReassignment)


@wire.response(ApiKey.LIST_PARTITION_REASSIGNMENTS, "0", flexible=0)
class ListPartitionReassignmentsResponse:
    """ListPartitionReassignments response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()
    error_message: str | None = wire.string(nullable="0+")
    topics: list[OngoingTopicReassignment] = wire.array(OngoingTopicReassignment)
