"""A broker that speaks the Kafka protocol: embedded in a process, or served over TCP."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.config import BrokerConfig
    from broker.model import TopicPartition
else:
    # Most who import from here want a client or a schema, not the whole broker.
    _MODULES = {"Broker": "broker", "BrokerConfig": "config", "TopicPartition": "model"}

    def __getattr__(name: str) -> object:
        """Import what is asked for."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"broker.{_MODULES[name]}"), name)


__all__ = ["Broker", "BrokerConfig", "TopicPartition"]
