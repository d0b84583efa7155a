"""A broker that speaks the Kafka protocol: embedded in a process, or served over TCP."""

from typing import TYPE_CHECKING

from broker.public_names import public_names

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.config import BrokerConfig
    from broker.errors import MillstreamError
    from broker.model import TopicPartition
    from broker.server.server import Server
else:
    # Most importers need a client or a schema, not the whole broker.
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "broker": ["Broker"],
            "config": ["BrokerConfig"],
            "errors": ["MillstreamError"],
            "model": ["TopicPartition"],
            "server.server": ["Server"],
        },
    )


__all__ = ["Broker", "BrokerConfig", "MillstreamError", "Server", "TopicPartition"]
