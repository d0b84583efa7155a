"""The registry over HTTP, as Confluent's clients expect it."""

from broker.registry.rest.application import RestApplication

__all__ = ["RestApplication"]
