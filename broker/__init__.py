"""A broker that speaks the Kafka protocol: embedded in a process, or served over TCP."""
