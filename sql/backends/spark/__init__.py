"""The Spark backend: runs plans on Structured Streaming."""
