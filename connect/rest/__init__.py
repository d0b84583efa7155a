"""Kafka Connect's REST API."""

from connect.rest.application import RestApplication

__all__ = ["RestApplication"]
