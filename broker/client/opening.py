"""Opens clients: on a broker in this process, or on "host:port,host:port"."""

from broker.client.cluster import Cluster
from broker.client.config import (
    ClusterConfig,
    NetworkConfig,
    ProducerConfig,
    refuse_unknown,
    take,
)
from broker.client.embedded import EmbeddedTransport, RequestHandler
from broker.client.network import NetworkTransport
from broker.client.producer import RecordProducer
from broker.client.transport import Transport

Target = RequestHandler | str


def producer(target: Target, **config: object) -> RecordProducer:
    """A producer; settings are Kafka's with underscores.

    >>> with producer(broker, linger_ms=0) as out:
    ...     out.send("greetings", b"hello", key=b"world").result()
    """
    options = dict(config)
    settings = take(ProducerConfig, options)
    return RecordProducer(open_cluster(target, options, ProducerConfig), settings)


def open_cluster(target: Target, options: dict[str, object], *taken: type[object]) -> Cluster:
    """The cluster behind a target, with the options that are left; unknown ones are refused.

    `taken` are the configs that took theirs before, to suggest their names too.
    """
    cluster_config = take(ClusterConfig, options)
    return Cluster(open_transport(target, options, ClusterConfig, *taken), config=cluster_config)


def open_transport(target: Target, options: dict[str, object], *taken: type[object]) -> Transport:
    """The way to a target, with the options that are left; unknown ones are refused."""
    if not isinstance(target, str):
        client_id = str(options.pop("client_id", "millstream"))
        refuse_unknown(options, NetworkConfig, *taken)
        return EmbeddedTransport(target, client_id=client_id)
    options["bootstrap_servers"] = target
    network = take(NetworkConfig, options)
    refuse_unknown(options, NetworkConfig, *taken)
    return NetworkTransport(network)
