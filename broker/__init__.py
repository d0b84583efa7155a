"""Everything that speaks Kafka: bytes, log, server, clients."""
