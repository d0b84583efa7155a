"""Schemas as values: column types; Avro, JSON Schema and Protobuf; no I/O."""
