"""Schemas as values: types of columns; texts of Avro, JSON Schema and Protobuf; no I/O."""
