"""Types of _speed.c: the functions of broker.batch.records, compiled."""

from array import array
from collections.abc import Sequence
from typing import TypeVar

from broker.batch.records import Bytes, Lists, Record, Row, RowHeaders, Section

T = TypeVar("T", bound=tuple[object, ...])

def encode_rows(rows: Sequence[Row]) -> tuple[bytes, int, int]: ...
def encode_kept(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytes: ...
def decode_rows(
    data: bytes, section: Section, row_type: type[T], prefix: tuple[object, ...] = ()
) -> list[T]: ...
def decode_lists(data: bytes, section: Section) -> Lists: ...
def decode_arrays(
    data: bytes, section: Section, longs: Sequence[array[int]], ints: Sequence[array[int]]
) -> RowHeaders | None: ...
def check_section(
    data: Bytes, fields: tuple[int, int, int, int, bool]
) -> tuple[int, int, bool]: ...
