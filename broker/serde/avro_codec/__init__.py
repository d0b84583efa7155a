"""Avro's binary encoding: code generators for reading and writing, and fastavro for the rest."""
