"""Clients of a schema registry: the interface of serdes, over HTTP, with a cache."""

from typing import TYPE_CHECKING

from broker.public_names import public_names
from broker.serde.registry.api import LATEST, RegisteredSchema, SchemaRegistry
from broker.serde.registry.cached_registry import CachedRegistry

if TYPE_CHECKING:
    from broker.serde.registry.http_registry import HttpSchemaRegistry
else:
    # The HTTP library is imported on demand: the import is slow.
    __getattr__, __dir__ = public_names(__name__, {"http_registry": ["HttpSchemaRegistry"]})


__all__ = ["LATEST", "CachedRegistry", "HttpSchemaRegistry", "RegisteredSchema", "SchemaRegistry"]
