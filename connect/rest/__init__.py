"""Kafka Connect's REST API."""

from connect.rest.application import connect_application

__all__ = ["connect_application"]
