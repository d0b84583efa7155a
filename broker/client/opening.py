"""Opens clients: of a broker in this process, of "host:port,host:port", or of shared clients."""

from broker.client.api import GroupProtocol
from broker.client.classic_group_member import GroupConfig, GroupMember
from broker.client.cluster import Cluster
from broker.client.cluster_admin import Admin
from broker.client.config import (
    ClusterConfig,
    NetworkConfig,
    ProducerConfig,
    refuse_unknown,
    take,
)
from broker.client.consumer_config import ConsumerConfig
from broker.client.embedded import EmbeddedTransport, RequestHandler
from broker.client.network import NetworkTransport
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.client.remote import Remote, machine_of
from broker.client.shared_clients import SharedClients
from broker.client.sharing import SharedTransports
from broker.client.transport import Transport
from broker.machine import Machine

Target = RequestHandler | str | Remote | SharedTransports | SharedClients


def producer(target: Target, **config: object) -> Producer:
    """A producer; the settings are Kafka's with underscores.

    >>> with producer(broker, linger_ms=0) as out:
    ...     out.send("greetings", b"hello", key=b"world").result()
    """
    options = dict(config)
    settings = take(ProducerConfig, options)
    return Producer(open_cluster(target, options, ProducerConfig), settings)


def consumer(target: Target, **config: object) -> Consumer:
    """A consumer; the settings are Kafka's with underscores. Without a group_id it can only assign.

    >>> with consumer(broker, group_id="readers", auto_offset_reset="earliest") as reader:
    ...     reader.subscribe(["greetings"])
    ...     records = reader.poll(timeout_ms=1000)
    """
    options = dict(config)
    settings = take(ConsumerConfig, options)
    group = None if options.get("group_id") is None else take(GroupConfig, options)
    return Consumer(open_cluster(target, options, ConsumerConfig, GroupConfig), settings, group)


def group_member(target: Target, protocol: GroupProtocol, **config: object) -> GroupMember:
    """A member of a group of any protocol type; its cluster is closed with it."""
    options = dict(config)
    group = take(GroupConfig, options)
    return GroupMember(open_cluster(target, options, GroupConfig), group, protocol)


def admin(target: Target, **config: object) -> Admin:
    """An admin of the cluster.

    >>> with admin(broker) as administration:
    ...     administration.create_topics([NewTopic("greetings", partitions=4)]).all()
    """
    return Admin(open_cluster(target, dict(config)))


def open_cluster(target: Target, options: dict[str, object], *taken: type[object]) -> Cluster:
    """The cluster of a target, with the remaining options; unknown ones are refused.

    `taken` are the configs that were read before, so that suggestions include their names.
    """
    cluster_config = take(ClusterConfig, options)
    machine = machine_of(target)
    transport = _open(target, machine, options, ClusterConfig, *taken)
    threads = target.threads if isinstance(target, SharedClients) else None
    return Cluster(transport, machine.clock, cluster_config, random=machine.random, threads=threads)


def open_transport(target: Target, options: dict[str, object], *taken: type[object]) -> Transport:
    """The transport to a target, with the remaining options; unknown ones are refused."""
    return _open(target, machine_of(target), options, *taken)


def _open(
    target: Target, machine: Machine, options: dict[str, object], *taken: type[object]
) -> Transport:
    if isinstance(target, SharedClients):
        return target.transports.open(options, *taken)
    if isinstance(target, SharedTransports):
        return target.open(options, *taken)
    if not isinstance(target, str | Remote):
        client_id = str(options.pop("client_id", "millstream"))
        refuse_unknown(options, NetworkConfig, *taken)
        return EmbeddedTransport(target, client_id=client_id, clock=machine.clock)
    options["bootstrap_servers"] = str(target)
    network = take(NetworkConfig, options)
    refuse_unknown(options, NetworkConfig, *taken)
    return NetworkTransport(network, machine=machine)
