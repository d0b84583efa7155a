"""The registry's REST API, as Confluent's clients expect it."""

from broker.registry.rest.application import RegistryApplication, registry_application

__all__ = ["RegistryApplication", "registry_application"]
