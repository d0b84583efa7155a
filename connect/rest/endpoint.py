"""Endpoint: what answers one method of one path."""

from collections.abc import Callable, Mapping

from connect.herder import Herder
from connect.rest.answers import Reply
from connect.rest.asked import Asked

# Called in a thread: most of them write to a topic, or wait for a connector.
Endpoint = Callable[[Herder, Asked], Reply]

# Paths with their variables in braces, then methods.
Endpoints = Mapping[str, Mapping[str, Endpoint]]
