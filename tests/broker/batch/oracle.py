"""kafka-python as a second opinion; importing it warns, and warnings are errors here."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2
    from kafka.record.default_records import DefaultRecordBatch

__all__ = ["DefaultRecordBatch", "murmur2"]
