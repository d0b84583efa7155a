"""Clients of a schema registry: what serdes ask of one, over HTTP and remembered."""

from importlib import import_module
from typing import TYPE_CHECKING

from broker.client.registry.api import LATEST, RegisteredSchema, SchemaRegistry
from broker.client.registry.cached_registry import CachedRegistry

if TYPE_CHECKING:
    from broker.client.registry.http_registry import HttpSchemaRegistry
else:

    def __getattr__(name: str) -> object:
        """The HTTP library is imported when it is used: the import is slow."""
        if name != "HttpSchemaRegistry":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module("broker.client.registry.http_registry").HttpSchemaRegistry


__all__ = ["LATEST", "CachedRegistry", "HttpSchemaRegistry", "RegisteredSchema", "SchemaRegistry"]
