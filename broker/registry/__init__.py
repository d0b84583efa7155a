"""The schema registry: Confluent's REST API over a compacted topic."""
