"""The herder: applies the target state of connectors."""

from connect.herder.herder import Herder, HerderParts

__all__ = ["Herder", "HerderParts"]
