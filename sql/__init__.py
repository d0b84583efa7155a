"""Millstream sql: ksqlDB's dialect; so far its language, without an engine."""
