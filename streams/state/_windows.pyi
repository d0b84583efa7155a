"""Types of _windows.c: the usual way of `_open_get` and `_open_put` of window.py, compiled."""

from collections.abc import Callable
from typing import Any

from streams.record import Headers
from streams.state.clean_rows import CleanRows
from streams.state.expiry import Expiry
from streams.state.open_store import ChangelogRow
from streams.state.row_groups import RowGroups
from streams.state.write_buffer import WriteBuffer

class Windows:
    """Windows of a timestamped store."""

    # Any, because the types of a store's values are known to its user only.
    def __new__(
        cls,
        expiry: Expiry,
        buffer: WriteBuffer,
        clean: CleanRows,
        groups: RowGroups,
        dirty: dict[bytes, bytes | None],
        # Of keys (None: they are texts in UTF-8), and both ways of values.
        codec: tuple[
            Callable[[Any], bytes | None] | None,
            Callable[[Any], bytes | None],
            Callable[[bytes], Any],
        ],
        plain: tuple[
            Callable[[Any, int], tuple[Any, int] | None], Callable[[Any, Any, int, int], int]
        ],
        numbers: tuple[int, int, int],  # retention, interval, bytes of an entry
        /,
    ) -> Windows: ...
    def changes(self, headers: Headers, /) -> list[ChangelogRow]: ...
    def get(self, key: Any, start_ms: int, /) -> tuple[Any, int] | None: ...
    def put(self, key: Any, value: Any, timestamp_ms: int, start_ms: int, /) -> int: ...
