"""Serving SQL: ksqlDB's REST API."""
