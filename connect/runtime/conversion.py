"""Converters and transforms of a connector, and how a record goes on after one has failed.

Each operation after the failed one has retries of its own, and its error may be tolerated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.client.api import ConsumerRecord
from connect.api import BulkConverter, Converter, HeaderConverter
from connect.records import Record, SourceRecord
from connect.runtime.error_handling import SKIPPED, ErrorHandler, RecordFailure, Stage

# What it is, whose code it is, and the code: False when it dropped the record.
Operation = tuple[Stage, str, Callable[[], bool]]


@dataclass(frozen=True, slots=True)
class Transform:
    """One transform of a chain, with its predicate inside."""

    name: str
    apply: Callable[[Record], Record | None]


@dataclass(frozen=True, slots=True)
class Converters:
    """How keys, values and headers of a connector's records are bytes, and by which names."""

    key: Converter
    value: Converter
    header: HeaderConverter
    key_name: str
    value_name: str
    header_name: str


def bulk_converters(converters: Converters) -> tuple[BulkConverter, BulkConverter] | None:
    """Those of keys and values, if both can convert many at once."""
    key, value = converters.key, converters.value
    if isinstance(key, BulkConverter) and isinstance(value, BulkConverter):
        return (key, value) if _agrees(key) and _agrees(value) else None
    return None


def _agrees(converter: BulkConverter) -> bool:
    """Whether no subclass has changed how one is converted without saying it for many."""
    for one, many in (
        ("from_connect_data", "from_connect_many"),
        ("to_connect_data", "to_connect_many"),
    ):
        last = next((kind for kind in type(converter).__mro__ if one in vars(kind)), object)
        if many not in vars(last):
            return False
    return True


def go_on(
    handler: ErrorHandler,
    record: SourceRecord | ConsumerRecord,
    operations: Sequence[Operation],
    error: Exception,
) -> bool:
    """Do the operations, of which the first has failed already; False when the record is out."""
    failed: Exception | None = error
    for stage, name, operation in operations:
        kept: object = True
        if failed is None:
            try:
                kept = operation()
            except Exception as raised:
                failed = raised
        if failed is not None:
            kept = handler.recover(RecordFailure(stage, name, failed, record), operation)
            failed = None
        if kept is SKIPPED or not kept:
            return False
    return True


def transform_operations(
    transforms: Sequence[Transform],
    change: Callable[[Callable[[Record], Record | None]], bool],
) -> list[Operation]:
    """The operations of a chain of transforms, each of which changes a record by `change`."""

    def operation(transform: Transform) -> Operation:
        return (Stage.TRANSFORMATION, transform.name, lambda: change(transform.apply))

    return [operation(transform) for transform in transforms]
