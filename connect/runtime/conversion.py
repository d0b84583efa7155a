"""The converters and transforms of a connector, and how to continue a record after a failure.

Each later operation has its own retries, and its error may be tolerated, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.client.api import ConsumerRecord
from connect.api import BulkConverter, Converter, HeaderConverter
from connect.records import Record, SourceRecord
from connect.runtime.error_handling import SKIPPED, ErrorHandler, RecordFailure, Stage

# The stage, the class name, and the function, which returns False if it dropped the record.
Operation = tuple[Stage, str, Callable[[], bool]]


@dataclass(frozen=True, slots=True)
class Transform:
    """One transform of a chain, including its predicate."""

    name: str
    apply: Callable[[Record], Record | None]


@dataclass(frozen=True, slots=True)
class Converters:
    """The converters of a connector's records, with their names."""

    key: Converter
    value: Converter
    header: HeaderConverter
    key_name: str
    value_name: str
    header_name: str


def bulk_converters(converters: Converters) -> tuple[BulkConverter, BulkConverter] | None:
    """The converters of keys and values, if both can convert many at once."""
    key, value = converters.key, converters.value
    if isinstance(key, BulkConverter) and isinstance(value, BulkConverter):
        return (key, value) if _is_consistent(key) and _is_consistent(value) else None
    return None


def _is_consistent(converter: BulkConverter) -> bool:
    """Whether no subclass overrides the conversion of one value without that of many."""
    for one, many in (
        ("from_connect_data", "from_connect_many"),
        ("to_connect_data", "to_connect_many"),
    ):
        last = next((kind for kind in type(converter).__mro__ if one in vars(kind)), object)
        if many not in vars(last):
            return False
    return True


def recover_record(
    handler: ErrorHandler,
    record: SourceRecord | ConsumerRecord,
    operations: Sequence[Operation],
    error: Exception,
) -> bool:
    """Run the operations, the first of which has failed; False if the record is dropped."""
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
    """The operations of a chain of transforms; `change` applies each to the record."""

    def operation(transform: Transform) -> Operation:
        return (Stage.TRANSFORMATION, transform.name, lambda: change(transform.apply))

    return [operation(transform) for transform in transforms]
