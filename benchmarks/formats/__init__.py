"""Formats: microseconds per record, compared with confluent-kafka's serializers."""
