"""Clients of one process that share I/O threads, and read each partition once for all of them."""

from broker.client.sharing.transports import SharedTransports

__all__ = ["SharedTransports"]
