"""Plans on Spark's Structured Streaming."""
