"""Endpoint: what answers one method of one path."""

from collections.abc import Callable, Mapping

from connect.herder import Herder
from connect.rest.answers import Reply
from connect.rest.http_request import HttpRequest

# Called in a thread: most of them write to a topic, or wait for a connector.
Endpoint = Callable[[Herder, HttpRequest], Reply]

# Paths with their variables in braces, then methods.
Endpoints = Mapping[str, Mapping[str, Endpoint]]
