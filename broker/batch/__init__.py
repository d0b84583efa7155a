"""RecordBatch v2: bytes on the wire and on disk."""
