"""Metadata of the cluster: versions, brokers, topics, coordinators."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.request(ApiKey.API_VERSIONS, "0-4", flexible=3)
class ApiVersionsRequest:
    """ApiVersions request."""

    client_software_name: str = wire.string("3+")
    client_software_version: str = wire.string("3+")


@wire.part
class ApiVersion:
    """Part of ApiVersionsResponse."""

    api_key: int = wire.int16()
    min_version: int = wire.int16()
    max_version: int = wire.int16()


@wire.part
class SupportedFeatureKey:
    """Part of ApiVersionsResponse."""

    name: str = wire.string("3+")
    min_version: int = wire.int16("3+")
    max_version: int = wire.int16("3+")


@wire.part
class FinalizedFeatureKey:
    """Part of ApiVersionsResponse."""

    name: str = wire.string("3+")
    max_version_level: int = wire.int16("3+")
    min_version_level: int = wire.int16("3+")


@wire.response(ApiKey.API_VERSIONS, "0-4", flexible=3)
class ApiVersionsResponse:
    """ApiVersions response."""

    error_code: int = wire.int16()
    api_keys: list[ApiVersion] = wire.array(ApiVersion)
    throttle_time_ms: int = wire.int32("1+")
    supported_features: list[SupportedFeatureKey] = wire.array(SupportedFeatureKey, "3+", tag=0)
    finalized_features_epoch: int = wire.int64("3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = wire.array(FinalizedFeatureKey, "3+", tag=2)
    zk_migration_ready: bool = wire.boolean("3+", tag=3)


@wire.part
class MetadataRequestTopic:
    """Part of MetadataRequest."""

    topic_id: bytes = wire.uuid("10+")
    name: str | None = wire.string(nullable="10+")


@wire.request(ApiKey.METADATA, "0-13", flexible=9)
class MetadataRequest:
    """Metadata request."""

    topics: list[MetadataRequestTopic] | None = wire.array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = wire.boolean("4+", default=True)
    include_cluster_authorized_operations: bool = wire.boolean("8-10")
    include_topic_authorized_operations: bool = wire.boolean("8+")


@wire.part
class MetadataResponseBroker:
    """Part of MetadataResponse."""

    node_id: int = wire.int32()
    host: str = wire.string()
    port: int = wire.int32()
    rack: str | None = wire.string("1+", default=None, nullable="1+")


@wire.part
class MetadataResponsePartition:
    """Part of MetadataResponse."""

    error_code: int = wire.int16()
    partition_index: int = wire.int32()
    leader_id: int = wire.int32()
    leader_epoch: int = wire.int32("7+", default=-1)
    replica_nodes: list[int] = wire.array("int32")
    isr_nodes: list[int] = wire.array("int32")
    offline_replicas: list[int] = wire.array("int32", "5+")


@wire.part
class MetadataResponseTopic:
    """Part of MetadataResponse."""

    error_code: int = wire.int16()
    name: str | None = wire.string(nullable="12+")
    topic_id: bytes = wire.uuid("10+")
    is_internal: bool = wire.boolean("1+")
    partitions: list[MetadataResponsePartition] = wire.array(MetadataResponsePartition)
    topic_authorized_operations: int = wire.int32("8+", default=-2147483648)


@wire.response(ApiKey.METADATA, "0-13", flexible=9)
class MetadataResponse:
    """Metadata response."""

    throttle_time_ms: int = wire.int32("3+")
    brokers: list[MetadataResponseBroker] = wire.array(MetadataResponseBroker)
    cluster_id: str | None = wire.string("2+", default=None, nullable="2+")
    controller_id: int = wire.int32("1+", default=-1)
    topics: list[MetadataResponseTopic] = wire.array(MetadataResponseTopic)
    cluster_authorized_operations: int = wire.int32("8-10", default=-2147483648)
    error_code: int = wire.int16("13+")


@wire.request(ApiKey.DESCRIBE_CLUSTER, "0-2", flexible=0)
class DescribeClusterRequest:
    """DescribeCluster request."""

    include_cluster_authorized_operations: bool = wire.boolean()
    endpoint_type: int = wire.int8("1+", default=1)
    include_fenced_brokers: bool = wire.boolean("2+")


@wire.part
class DescribeClusterBroker:
    """Part of DescribeClusterResponse."""

    broker_id: int = wire.int32()
    host: str = wire.string()
    port: int = wire.int32()
    rack: str | None = wire.string(default=None, nullable="0+")
    is_fenced: bool = wire.boolean("2+")


@wire.response(ApiKey.DESCRIBE_CLUSTER, "0-2", flexible=0)
class DescribeClusterResponse:
    """DescribeCluster response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()
    error_message: str | None = wire.string(default=None, nullable="0+")
    endpoint_type: int = wire.int8("1+", default=1)
    cluster_id: str = wire.string()
    controller_id: int = wire.int32(default=-1)
    brokers: list[DescribeClusterBroker] = wire.array(DescribeClusterBroker)
    cluster_authorized_operations: int = wire.int32(default=-2147483648)


@wire.part
class TopicRequest:
    """Part of DescribeTopicPartitionsRequest."""

    name: str = wire.string()


@wire.part
class Cursor:
    """Part of DescribeTopicPartitionsRequest."""

    topic_name: str = wire.string()
    partition_index: int = wire.int32()


@wire.request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "0", flexible=0)
class DescribeTopicPartitionsRequest:
    """DescribeTopicPartitions request."""

    topics: list[TopicRequest] = wire.array(TopicRequest)
    response_partition_limit: int = wire.int32(default=2000)
    cursor: Cursor | None = wire.struct(Cursor, default=None, nullable="0+")


@wire.part
class DescribeTopicPartitionsResponsePartition:
    """Part of DescribeTopicPartitionsResponse."""

    error_code: int = wire.int16()
    partition_index: int = wire.int32()
    leader_id: int = wire.int32()
    leader_epoch: int = wire.int32(default=-1)
    replica_nodes: list[int] = wire.array("int32")
    isr_nodes: list[int] = wire.array("int32")
    eligible_leader_replicas: list[int] | None = wire.array("int32", default=None, nullable="0+")
    last_known_elr: list[int] | None = wire.array("int32", default=None, nullable="0+")
    offline_replicas: list[int] = wire.array("int32")


@wire.part
class DescribeTopicPartitionsResponseTopic:
    """Part of DescribeTopicPartitionsResponse."""

    error_code: int = wire.int16()
    name: str | None = wire.string(nullable="0+")
    topic_id: bytes = wire.uuid()
    is_internal: bool = wire.boolean()
    partitions: list[DescribeTopicPartitionsResponsePartition] = wire.array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = wire.int32(default=-2147483648)


@wire.response(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "0", flexible=0)
class DescribeTopicPartitionsResponse:
    """DescribeTopicPartitions response."""

    throttle_time_ms: int = wire.int32()
    topics: list[DescribeTopicPartitionsResponseTopic] = wire.array(
        DescribeTopicPartitionsResponseTopic
    )
    next_cursor: Cursor | None = wire.struct(Cursor, default=None, nullable="0+")


@wire.request(ApiKey.FIND_COORDINATOR, "0-6", flexible=3)
class FindCoordinatorRequest:
    """FindCoordinator request."""

    key: str = wire.string("0-3")
    key_type: int = wire.int8("1+")
    coordinator_keys: list[str] = wire.array("string", "4+")


@wire.part
class Coordinator:
    """Part of FindCoordinatorResponse."""

    key: str = wire.string("4+")
    node_id: int = wire.int32("4+")
    host: str = wire.string("4+")
    port: int = wire.int32("4+")
    error_code: int = wire.int16("4+")
    error_message: str | None = wire.string("4+", nullable="4+")


@wire.response(ApiKey.FIND_COORDINATOR, "0-6", flexible=3)
class FindCoordinatorResponse:
    """FindCoordinator response."""

    throttle_time_ms: int = wire.int32("1+")
    error_code: int = wire.int16("0-3")
    error_message: str | None = wire.string("1-3", nullable="1-3")
    node_id: int = wire.int32("0-3")
    host: str = wire.string("0-3")
    port: int = wire.int32("0-3")
    coordinators: list[Coordinator] = wire.array(Coordinator, "4+")
