"""Endpoint: what answers one method of one path, and where it is called.

What only looks something up is called at once. What writes, parses or goes through everything may
take long and is called in a thread, so that other requests are answered meanwhile.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.registry.registry import Registry
from broker.registry.rest.answers import Json
from broker.registry.rest.requests import RestRequest

Handler = Callable[[Registry, RestRequest], Json]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A handler, and which requests it answers at once."""

    handler: Handler
    is_short: Callable[[RestRequest], bool] = lambda _: False


# Paths with their variables in braces, then methods.
Endpoints = Mapping[str, Mapping[str, Endpoint]]


def short(handler: Handler) -> Endpoint:
    """An endpoint that only looks something up."""
    return Endpoint(handler, lambda _: True)


def short_unless_formatted(handler: Handler) -> Endpoint:
    """One that looks a schema up, and parses it only to give it another form."""
    return Endpoint(handler, lambda asked: not asked.text("format"))
