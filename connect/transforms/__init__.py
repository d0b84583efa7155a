"""Single message transforms and predicates, as Kafka Connect has them."""
