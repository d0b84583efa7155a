"""Interactive queries over HTTP: any instance answers for any key."""

from streams.serving.server import QueryServer

__all__ = ["QueryServer"]
