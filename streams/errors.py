"""Errors of streams.

MillstreamError
└── StreamsError                 anything that goes wrong in a streams application
    ├── TopologyError            the topology cannot be built; `at` is the user's line
    ├── StreamsConfigError       an unknown or wrong setting of the application
    ├── ProcessingFailed         a user's function failed on a record
    ├── DeserializationFailed    bytes of an input topic are no value
    ├── ProductionFailed         a result cannot be bytes, or the broker refused it
    ├── InvalidTimestamp         a record whose timestamp extractor gave a negative time
    ├── BufferOverflow           a suppress buffer is full and set to shut down
    ├── StoreError               a store was asked something it cannot do
    │   ├── StoreNotFound        no such store, or not connected to this processor
    │   └── StoreNotReady        the store is being restored, or has moved to another instance
    ├── StateDirectoryLocked     another process uses the state directory of a task
    └── TaskMigrated             the task belongs to another instance now; nothing is lost
"""

from broker.errors import MillstreamError


class StreamsError(MillstreamError):
    """Anything that goes wrong in a streams application."""


class TopologyError(StreamsError):
    """The topology cannot be built; `at` is the user's line."""


class StreamsConfigError(StreamsError):
    """An unknown or wrong setting of the application."""


class ProcessingFailed(StreamsError):
    """A user's function failed on a record."""


class DeserializationFailed(StreamsError):
    """Bytes of an input topic are no value."""


class ProductionFailed(StreamsError):
    """A result cannot be bytes, or the broker refused it."""


class InvalidTimestamp(StreamsError):
    """A record whose timestamp extractor gave a negative time."""


class BufferOverflow(StreamsError):
    """A suppress buffer is full and set to shut down."""


class StoreError(StreamsError):
    """A store was asked something it cannot do."""


class StoreNotFound(StoreError):
    """No such store, or it is not connected to this processor."""


class StoreNotReady(StoreError):
    """The store is being restored, or has moved to another instance."""


class StateDirectoryLocked(StreamsError):
    """Another process uses the state directory of a task."""


class TaskMigrated(StreamsError):
    """The task belongs to another instance now; nothing is lost."""
