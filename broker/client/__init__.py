"""Clients of any Kafka-protocol broker, embedded or over the network."""

from broker.client.opening import producer

__all__ = ["producer"]
