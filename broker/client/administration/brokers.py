"""The brokers of the cluster and their disks."""

from collections.abc import Iterable

from broker.client.administration.outcomes import error_for
from broker.client.administration.values import (
    ClusterDescription,
    LogDir,
    PartitionSize,
    Results,
)
from broker.client.answers import check
from broker.client.cluster import Cluster
from broker.client.transport import Node
from broker.errors import BrokerError
from broker.model import TopicPartition
from broker.protocol.messages.configs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from broker.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse


def describe_cluster(cluster: Cluster, *, timeout_ms: int) -> ClusterDescription:
    response = cluster.call(
        None, DescribeClusterRequest(), DescribeClusterResponse, timeout_ms=timeout_ms
    )
    check(response.error_code, "cannot describe the cluster", message=response.error_message)
    nodes = tuple(
        Node(broker.broker_id, broker.host, broker.port)
        for broker in sorted(response.brokers, key=lambda broker: broker.broker_id)
    )
    cluster.transport.update_nodes(nodes)
    return ClusterDescription(response.cluster_id, response.controller_id, nodes)


def describe_log_dirs(
    cluster: Cluster, brokers: Iterable[int] | None, *, timeout_ms: int
) -> Results[int, tuple[LogDir, ...]]:
    """The data directories of brokers (None: of all) and their partitions."""
    if brokers is None:
        brokers = [node.id for node in describe_cluster(cluster, timeout_ms=timeout_ms).nodes]
    values: dict[int, tuple[LogDir, ...]] = {}
    errors: dict[int, BrokerError] = {}
    for broker in brokers:
        response = cluster.call(
            broker,
            DescribeLogDirsRequest(topics=None),
            DescribeLogDirsResponse,
            timeout_ms=timeout_ms,
        )
        error = error_for(response.error_code, f"cannot describe the log dirs of broker {broker}")
        if error is None:
            values[broker] = tuple(_log_dir(result) for result in response.results)
        else:
            errors[broker] = error
    return Results(values, errors)


def _log_dir(result: DescribeLogDirsResult) -> LogDir:
    return LogDir(
        result.log_dir,
        {
            TopicPartition(topic.name, item.partition_index): PartitionSize(
                item.partition_size, item.offset_lag, item.is_future_key
            )
            for topic in result.topics
            for item in topic.partitions
        },
        result.total_bytes,
        result.usable_bytes,
        error_for(result.error_code, f'log dir "{result.log_dir}"'),
    )
