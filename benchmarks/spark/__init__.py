"""SQL on Spark compared with hand-written PySpark and with the native engine."""
