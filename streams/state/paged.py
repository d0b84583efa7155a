"""PagedDatabase: stores over a slow map of pages, such as the state of another engine.

Rows are sorted by key and divided into pages; an index has the first key of each page. A page is
loaded when it is first needed and stays in memory until the database is closed; `flush` writes
changed pages and the index. So a batch of work reads each page once.

    index   page 0   first keys of pages, their numbers, how many rows and bytes there are
    page    page n   rows
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from streams.errors import StoreError
from streams.state.backing import Backing, Write

T = TypeVar("T")

PAGE_BYTES = 32 * 1024  # a page of twice this size is split
INDEX = 0
METADATA = ""  # the store whose index page has the metadata


class Pages(Protocol):
    """The map of pages, by store and number."""

    def get(self, store: str, number: int) -> bytes | None:
        """A page, or None."""
        ...

    def put(self, store: str, number: int, page: bytes) -> None:
        """Store a page."""
        ...

    def remove(self, store: str, number: int) -> None:
        """Remove a page."""
        ...


class _Index(msgspec.Struct, array_like=True):
    """The pages of a store."""

    firsts: list[bytes] = msgspec.field(default_factory=list)
    numbers: list[int] = msgspec.field(default_factory=list)
    following: int = INDEX + 1  # the number of the next new page
    rows: int = 0
    size_bytes: int = 0


@dataclass(slots=True)
class _Page:
    """Consecutive rows."""

    number: int
    rows: dict[bytes, bytes] = field(default_factory=dict)
    size_bytes: int = 0
    keys: list[bytes] | None = None  # sorted, created when they are needed
    changed: bool = False
    is_stored: bool = True  # it was read or written, not just created

    def sorted_keys(self) -> list[bytes]:
        if self.keys is None:
            self.keys = sorted(self.rows)
        return self.keys


_PAGE = msgspec.msgpack.Decoder(dict[bytes, bytes])
_INDEX = msgspec.msgpack.Decoder(_Index)
_encode = msgspec.msgpack.Encoder().encode


class PagedBacking:
    """The rows of one store; one thread uses it."""

    is_memory = False

    def __init__(self, store: str, pages: Pages, page_bytes: int) -> None:
        self._store = store
        self._pages = pages
        self._page_bytes = page_bytes
        data = pages.get(store, INDEX)
        self._index = _Index() if data is None else _decoded(_INDEX, data, store)
        if len(self._index.firsts) != len(self._index.numbers):
            raise _damaged(store, "its index is inconsistent")
        self._loaded: dict[int, _Page] = {}
        self._removed: set[int] = set()
        self._changed = False

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        position = bisect_right(self._index.firsts, key) - 1
        return None if position < 0 else self._page(position).rows.get(key)

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows from `first` (inclusive) to `before` (exclusive); None means unbounded."""
        firsts = self._index.firsts
        begin = 0 if first is None else max(0, bisect_right(firsts, first) - 1)
        end = len(firsts) if before is None else bisect_left(firsts, before)
        pages = [self._page(position) for position in range(begin, end)]
        for page in reversed(pages) if backwards else pages:
            keys = page.sorted_keys()
            low = 0 if first is None else bisect_left(keys, first)
            high = len(keys) if before is None else bisect_left(keys, before)
            selected = keys[low:high]
            rows = page.rows
            yield from [(key, rows[key]) for key in (reversed(selected) if backwards else selected)]

    def count(self) -> int:
        """The number of rows."""
        return self._index.rows

    @property
    def size_bytes(self) -> int:
        """Bytes of keys and values."""
        return self._index.size_bytes

    @property
    def memory_bytes(self) -> int:
        """The approximate size of the loaded pages."""
        return sum(page.size_bytes for page in self._loaded.values())

    def write(self, rows: Mapping[bytes, bytes | None]) -> None:
        """Set rows, or delete those with None."""
        for key, value in rows.items():
            if value is None:
                self._delete(key)
            else:
                self._set(key, value)

    def expire(self, before: bytes) -> None:
        """Delete all rows before a key."""
        while self._index.firsts and self._index.firsts[0] < before:
            page = self._page(0)
            keys = page.sorted_keys()
            expired = keys[: bisect_left(keys, before)]
            for key in expired:
                self._delete(key)
            if page.rows or not expired:
                return

    def flush(self) -> None:
        """Write changed pages and the index."""
        if not self._changed:
            return
        self._changed = False
        for number in self._removed:
            self._pages.remove(self._store, number)
        self._removed.clear()
        for page in self._loaded.values():
            if page.changed:
                page.changed, page.is_stored = False, True
                self._pages.put(self._store, page.number, _encode(page.rows))
        self._pages.put(self._store, INDEX, _encode(self._index))

    # --- internal -----------------------------------------------------------------------------

    def _page(self, position: int) -> _Page:
        number = self._index.numbers[position]
        page = self._loaded.get(number)
        if page is None:
            data = self._pages.get(self._store, number)
            if data is None:
                raise _damaged(self._store, f"page {number} is missing")
            rows = _decoded(_PAGE, data, self._store)
            size_bytes = sum(len(key) + len(value) for key, value in rows.items())
            page = self._loaded[number] = _Page(number, rows, size_bytes)
        return page

    def _set(self, key: bytes, value: bytes) -> None:
        index = self._index
        position = bisect_right(index.firsts, key) - 1
        if position < 0:
            position = 0
            if index.firsts:
                self._page(0)
                index.firsts[0] = key
            else:
                self._add_page(0, key)
        page = self._page(position)
        old = page.rows.get(key)
        page.rows[key] = value
        added = len(value) - len(old) if old is not None else len(key) + len(value)
        page.size_bytes += added
        index.size_bytes += added
        if old is None:
            page.keys = None
            index.rows += 1
        page.changed = self._changed = True
        if page.size_bytes > 2 * self._page_bytes and len(page.rows) > 1:
            self._split(position)

    def _delete(self, key: bytes) -> None:
        index = self._index
        position = bisect_right(index.firsts, key) - 1
        if position < 0:
            return
        page = self._page(position)
        old = page.rows.pop(key, None)
        if old is None:
            return
        size = len(key) + len(old)
        page.size_bytes -= size
        index.size_bytes -= size
        index.rows -= 1
        page.keys = None
        page.changed = self._changed = True
        if not page.rows:
            del index.firsts[position], index.numbers[position], self._loaded[page.number]
            if page.is_stored:
                self._removed.add(page.number)

    def _add_page(self, position: int, first: bytes) -> _Page:
        index = self._index
        page = _Page(index.following, is_stored=False)
        index.following += 1
        index.firsts.insert(position, first)
        index.numbers.insert(position, page.number)
        self._loaded[page.number] = page
        return page

    def _split(self, position: int) -> None:
        """Move the upper half of a page's rows to a new one."""
        page = self._page(position)
        keys = page.sorted_keys()
        middle = len(keys) // 2
        added = self._add_page(position + 1, keys[middle])
        for key in keys[middle:]:
            value = page.rows.pop(key)
            added.rows[key] = value
            added.size_bytes += len(key) + len(value)
        page.size_bytes -= added.size_bytes
        page.keys, added.keys = keys[:middle], keys[middle:]
        added.changed = True


class PagedDatabase:
    """The stores of a task, in pages; nothing is written before `flush`."""

    def __init__(self, stores: Sequence[str], pages: Pages, page_bytes: int = PAGE_BYTES) -> None:
        self._pages = pages
        self._backings = {name: PagedBacking(name, pages, page_bytes) for name in stores}
        data = pages.get(METADATA, INDEX)
        self._metadata: dict[bytes, bytes] = (
            {} if data is None else _decoded(_PAGE, data, "metadata")
        )
        self._metadata_changed = False

    def backing(self, store: str) -> Backing:
        """The rows of a store."""
        return self._backings[store]

    def metadata(self) -> dict[bytes, bytes]:
        """The metadata that was written with the rows."""
        return dict(self._metadata)

    def write(self, write: Write) -> None:
        """Change rows and metadata, in loaded pages."""
        for name, rows in write.rows.items():
            self._backings[name].write(rows)
        for name, before in write.expired.items():
            self._backings[name].expire(before)
        for key, value in write.metadata.items():
            self._metadata_changed = True
            if value is None:
                self._metadata.pop(key, None)
            else:
                self._metadata[key] = value

    def flush(self) -> None:
        """Write all changed pages."""
        for backing in self._backings.values():
            backing.flush()
        if self._metadata_changed:
            self._metadata_changed = False
            self._pages.put(METADATA, INDEX, _encode(self._metadata))

    def close(self) -> None:
        """Discard changes that were not flushed."""
        self._backings.clear()


def _decoded(decoder: msgspec.msgpack.Decoder[T], data: bytes, store: str) -> T:
    try:
        return decoder.decode(data)
    except msgspec.DecodeError as error:
        raise _damaged(store, str(error)) from error


def _damaged(store: str, reason: str) -> StoreError:
    return StoreError(
        f'the pages of store "{store}" are damaged: {reason}',
        hint="restart from an older checkpoint",
    )
