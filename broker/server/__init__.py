"""The network side of the broker."""

from broker.server.server import Server, run

__all__ = ["Server", "run"]
