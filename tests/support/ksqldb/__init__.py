"""What clients of ksqlDB do in tests, in languages and environments of their own."""
