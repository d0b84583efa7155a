"""Clients of a schema registry: what serdes ask of one, over HTTP and remembered."""

from broker.client.registry.api import LATEST, RegisteredSchema, SchemaRegistry
from broker.client.registry.cached_registry import CachedRegistry
from broker.client.registry.http_registry import HttpSchemaRegistry

__all__ = ["LATEST", "CachedRegistry", "HttpSchemaRegistry", "RegisteredSchema", "SchemaRegistry"]
