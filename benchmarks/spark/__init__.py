"""SQL on Spark beside the same written by hand, and beside the native engine."""
