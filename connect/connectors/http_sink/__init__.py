"""Records to an HTTP service."""

from connect.connectors.http_sink.connector import HttpSinkConnector, HttpSinkTask

__all__ = ["HttpSinkConnector", "HttpSinkTask"]
