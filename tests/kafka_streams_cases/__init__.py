"""Runs case files of the Kafka Streams conformance format on our TopologyTestDriver."""
