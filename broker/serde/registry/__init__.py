"""Clients of a schema registry: what serdes ask of one, over HTTP and remembered."""

from typing import TYPE_CHECKING

from broker.public_names import public_names
from broker.serde.registry.api import LATEST, RegisteredSchema, SchemaRegistry
from broker.serde.registry.cached_registry import CachedRegistry

if TYPE_CHECKING:
    from broker.serde.registry.http_registry import HttpSchemaRegistry
else:
    # The HTTP library is imported when it is used: the import is slow.
    __getattr__, __dir__ = public_names(__name__, {"http_registry": ["HttpSchemaRegistry"]})


__all__ = ["LATEST", "CachedRegistry", "HttpSchemaRegistry", "RegisteredSchema", "SchemaRegistry"]
