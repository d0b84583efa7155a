"""Endpoint: what answers one method of one path."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.registry.registry import Registry
from broker.registry.rest.answers import Json
from broker.registry.rest.asked import Asked

Handler = Callable[[Registry, Asked], Json]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A handler; one that may take long, for it writes or parses, is called in a thread."""

    handler: Handler
    in_thread: bool = True


# Paths with their variables in braces, then methods.
Endpoints = Mapping[str, Mapping[str, Endpoint]]


def short(handler: Handler) -> Endpoint:
    """An endpoint that only looks something up."""
    return Endpoint(handler, in_thread=False)
