"""Stores in pages hold the same rows as a sorted map, whatever is loaded, cut and given back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.errors import StoreError
from streams.state.backing import Write
from streams.state.paged import INDEX, PagedDatabase

KEYS = st.binary(max_size=3)
BOUNDS = st.none() | KEYS


class MemoryPages:
    """Pages in a dict, which counts what it is asked."""

    def __init__(self) -> None:
        self.pages: dict[tuple[str, int], bytes] = {}
        self.asked = 0

    def get(self, store: str, number: int) -> bytes | None:
        self.asked += 1
        return self.pages.get((store, number))

    def put(self, store: str, number: int, page: bytes) -> None:
        self.pages[store, number] = page

    def remove(self, store: str, number: int) -> None:
        del self.pages[store, number]


def opened(pages: MemoryPages, page_bytes: int = 16) -> PagedDatabase:
    return PagedDatabase(["rows"], pages, page_bytes)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.dictionaries(KEYS, st.none() | st.binary(max_size=8))),
        st.tuples(st.just("expire"), KEYS),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=20,
)


@given(steps=STEPS, first=BOUNDS, before=BOUNDS, backwards=st.booleans())
@example(
    steps=[("set", {b"": b""}), ("expire", b"\0"), ("flush", None)],
    first=None,
    before=None,
    backwards=False,
)  # a page that came and went between two flushes
def test_rows_are_those_of_a_sorted_map(
    steps: list[tuple[str, object]], first: bytes | None, before: bytes | None, backwards: bool
) -> None:
    pages = MemoryPages()
    database = opened(pages)
    model: dict[bytes, bytes] = {}
    kept: dict[bytes, bytes] = {}
    for step, given_value in steps:
        match step, given_value:
            case "set", dict(rows):
                database.write(Write(rows={"rows": rows}))
                model.update({key: value for key, value in rows.items() if value is not None})
                for key in [key for key, value in rows.items() if value is None]:
                    model.pop(key, None)
            case "expire", bytes(limit):
                database.write(Write(expired={"rows": limit}))
                model = {key: value for key, value in model.items() if key >= limit}
            case "flush", _:
                database.flush()
                kept = dict(model)
            case "reopen", _:
                database = opened(pages)
                model = dict(kept)
    backing = database.backing("rows")
    low, high = first if first is not None else b"", before
    expected = sorted(
        (key, value) for key, value in model.items() if key >= low and (high is None or key < high)
    )
    found = list(backing.scan(first, before, backwards=backwards))
    assert found == (expected[::-1] if backwards else expected)
    assert {key: backing.get(key) for key in model} == model
    assert backing.get(b"not there") is None
    assert backing.count() == len(model)
    assert backing.size_bytes == sum(len(key) + len(value) for key, value in model.items())


def test_metadata_is_kept_with_the_rows() -> None:
    pages = MemoryPages()
    database = opened(pages)
    database.write(Write(metadata={b"time": b"7", b"other": b"1"}))
    assert opened(pages).metadata() == {}
    database.flush()
    database.write(Write(metadata={b"other": None}))
    database.flush()
    assert opened(pages).metadata() == {b"time": b"7"}


def test_only_the_pages_that_are_needed_are_asked_for() -> None:
    pages = MemoryPages()
    database = opened(pages, page_bytes=1024)
    rows: dict[bytes, bytes | None] = {b"%06d" % number: b"x" * 10 for number in range(10_000)}
    database.write(Write(rows={"rows": rows}))
    database.flush()
    again = opened(pages, page_bytes=1024)
    pages.asked = 0
    backing = again.backing("rows")
    for _ in range(5):
        assert backing.get(b"004999") == b"x" * 10
    assert pages.asked == 1
    assert len(list(backing.scan(b"005000", b"005100"))) == 100
    assert pages.asked < 6
    assert len(pages.pages) > 50


def test_pages_without_rows_are_given_up() -> None:
    pages = MemoryPages()
    database = opened(pages)
    rows: dict[bytes, bytes | None] = {b"%03d" % number: b"x" for number in range(100)}
    database.write(Write(rows={"rows": rows}))
    database.flush()
    database.write(Write(rows={"rows": dict.fromkeys(rows)}))
    database.flush()
    assert set(pages.pages) == {("rows", INDEX)}


@pytest.mark.parametrize("page", [b"", b"\xff", b"\x93\x90\x91\x01\x02", b"\x81\xa1x\xa1y"])
def test_damaged_pages_are_refused(page: bytes) -> None:
    pages = MemoryPages()
    database = opened(pages)
    database.write(Write(rows={"rows": {b"a": b"1"}}))
    database.flush()
    pages.put("rows", INDEX, page)
    with pytest.raises(StoreError, match="damaged"):
        opened(pages)


def test_a_missing_page_is_refused() -> None:
    pages = MemoryPages()
    database = opened(pages)
    database.write(Write(rows={"rows": {b"a": b"1"}}))
    database.flush()
    pages.remove("rows", INDEX + 1)
    with pytest.raises(StoreError, match="page 1 is missing"):
        opened(pages).backing("rows").get(b"a")
