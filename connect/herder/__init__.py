"""The herder: what is wanted of connectors becomes what runs."""

from connect.herder.herder import Herder, HerderParts

__all__ = ["Herder", "HerderParts"]
