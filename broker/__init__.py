"""A broker that speaks the Kafka protocol: embedded in a process, or served over TCP."""

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.model import TopicPartition

__all__ = ["Broker", "BrokerConfig", "TopicPartition"]
