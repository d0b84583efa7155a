"""One SQL file, run by the native engine or by Spark over the same generated events."""
