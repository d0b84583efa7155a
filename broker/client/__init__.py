"""Clients of any Kafka-protocol broker, embedded or over the network."""
