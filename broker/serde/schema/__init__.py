"""Avro, JSON Schema and Protobuf schemas: parsing, printing, compatibility; no I/O."""
