"""The schema registry: Confluent's REST API over a compacted topic."""

from typing import TYPE_CHECKING

from broker.public_names import public_names

if TYPE_CHECKING:
    from broker.registry.registry import Registry
    from broker.registry.server import RegistryServer
else:
    __getattr__, __dir__ = public_names(
        __name__, {"registry": ["Registry"], "server": ["RegistryServer"]}
    )


__all__ = ["Registry", "RegistryServer"]
