"""Clients of any Kafka-protocol broker, embedded or over the network."""

from broker.client.opening import admin, consumer, group_member, producer

__all__ = ["admin", "consumer", "group_member", "producer"]
