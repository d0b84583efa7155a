"""Formats: microseconds per record, beside confluent-kafka's serializers."""
