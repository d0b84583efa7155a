"""Errors of streams.

MillstreamError
└── StreamsError                 the base class of all errors of streams applications
    ├── TopologyError            the topology cannot be built; `at` is the user's line
    ├── StreamsConfigError       an unknown or invalid setting of the application
    ├── ProcessingFailed         a user's function failed on a record
    ├── DeserializationFailed    a record of an input topic cannot be deserialized
    ├── ProductionFailed         a result cannot be serialized, or the broker refused it
    ├── InvalidTimestamp         a record or its timestamp extractor has a negative timestamp
    ├── BufferOverflow           a suppress buffer is full and set to shut down
    ├── StoreError               a store does not support an operation, or cannot be read
    │   ├── StoreNotFound        no such store, or not connected to this processor
    │   └── StoreNotReady        the store is being restored, or has moved to another instance
    ├── StateDirectoryLocked     another process uses the state directory of a task
    └── TaskMigrated             another instance owns the task now; nothing is lost
"""

from broker.errors import MillstreamError


class StreamsError(MillstreamError):
    """The base class of all errors of streams applications."""


class TopologyError(StreamsError):
    """The topology cannot be built; `at` is the user's line."""


class StreamsConfigError(StreamsError):
    """An unknown or invalid setting of the application."""


class ProcessingFailed(StreamsError):
    """A user's function failed on a record."""


class DeserializationFailed(StreamsError):
    """A record of an input topic cannot be deserialized."""


class ProductionFailed(StreamsError):
    """A result cannot be serialized, or the broker refused it."""


class InvalidTimestamp(StreamsError):
    """A record or its timestamp extractor has a negative timestamp."""


class BufferOverflow(StreamsError):
    """A suppress buffer is full and set to shut down."""


class StoreError(StreamsError):
    """A store does not support an operation, or cannot be read."""


class StoreNotFound(StoreError):
    """No such store, or it is not connected to this processor."""


class StoreNotReady(StoreError):
    """The store is being restored, or has moved to another instance."""


class StateDirectoryLocked(StreamsError):
    """Another process uses the state directory of a task."""


class TaskMigrated(StreamsError):
    """Another instance owns the task now; nothing is lost."""
