"""WriteBuffer: reads see writes; memory stays inside its budget; other threads see whole rows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.state.clean_rows import ENTRY_BYTES
from streams.state.memory import MemoryBacking
from streams.state.row_groups import RowGroups
from streams.state.write_buffer import WriteBuffer

KEYS = st.binary(max_size=2)


class CountedBacking(MemoryBacking):
    """Rows in memory that pretend to be on disk, and count how often they are asked."""

    is_memory = False

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        inner = self.get

        def get(key: bytes) -> bytes | None:
            self.asked += 1
            return inner(key)

        self.get = get


def commit(buffer: WriteBuffer, backing: MemoryBacking) -> None:
    backing.write(buffer.dirty)
    buffer.committed()


@given(
    steps=st.lists(
        st.one_of(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=9))), st.booleans())
    ),
    first=st.one_of(st.none(), KEYS),
    before=st.one_of(st.none(), KEYS),
)
def test_scans_are_those_of_a_sorted_dict(
    steps: list[tuple[bytes, bytes | None] | bool], first: bytes | None, before: bytes | None
) -> None:
    backing = CountedBacking()
    buffer = WriteBuffer(backing, cache_bytes=500)
    now: dict[bytes, bytes] = {}
    committed: dict[bytes, bytes] = {}
    for step in steps:
        if step is True:
            commit(buffer, backing)
            committed = dict(now)
        elif step is False:
            buffer.discard()
            now = dict(committed)
        else:
            key, value = step
            buffer.put(key, value)
            now.pop(key, None)
            if value is not None:
                now[key] = value
            assert buffer.get(key) == value
        expected = sorted(
            row
            for row in now.items()
            if (first is None or row[0] >= first) and (before is None or row[0] < before)
        )
        for reads in (buffer, buffer.shared()):
            assert list(reads.scan(first, before)) == expected
            assert list(reads.scan(first, before, backwards=True)) == expected[::-1]
            assert {key: reads.get(key) for key in now} == now
        dirty = sum(
            ENTRY_BYTES + len(key) + len(value or b"") for key, value in buffer.dirty.items()
        )
        assert buffer.dirty_bytes == dirty


def test_a_row_is_read_from_the_backing_once() -> None:
    backing = CountedBacking()
    backing.write({b"a": b"1"})
    buffer = WriteBuffer(backing, cache_bytes=10_000)
    assert [buffer.get(b"a"), buffer.get(b"a")] == [b"1", b"1"]
    assert backing.asked == 1
    buffer.put(b"b", b"2")
    commit(buffer, backing)
    assert buffer.get(b"b") == b"2"
    assert backing.asked == 1


def test_a_row_that_is_not_there_is_asked_for_again() -> None:
    # Mostly it is written next; to remember every absence would cost more than it saves.
    backing = CountedBacking()
    buffer = WriteBuffer(backing, cache_bytes=10_000)
    assert [buffer.get(b"no"), buffer.get(b"no")] == [None, None]
    assert backing.asked == 2


def test_rows_of_many_small_commits_are_merged_and_the_newest_counts() -> None:
    backing = CountedBacking()
    buffer = WriteBuffer(backing, cache_bytes=100_000)
    for number in range(200):
        buffer.put(b"%d" % (number % 7), b"%d" % number)
        commit(buffer, backing)
    assert [buffer.get(b"%d" % key) for key in range(7)] == [
        b"%d" % max(number for number in range(200) if number % 7 == key) for key in range(7)
    ]
    assert backing.asked == 0


def test_the_cache_stays_inside_its_budget_and_keeps_what_was_used_last() -> None:
    backing = CountedBacking()
    backing.write({b"%d" % number: b"x" * 100 for number in range(1000)})
    buffer = WriteBuffer(backing, cache_bytes=20 * (ENTRY_BYTES + 110))
    for number in range(1000):
        buffer.get(b"%d" % number)
        buffer.get(b"0")
        used = buffer.memory_bytes - backing.memory_bytes
        assert used <= 20 * (ENTRY_BYTES + 110)
    asked = backing.asked
    buffer.get(b"0")
    buffer.get(b"999")
    assert backing.asked == asked


@settings(max_examples=200)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(KEYS, st.integers(0, 9), st.one_of(st.none(), st.binary(max_size=9))),
            st.sampled_from(["commit", "discard", "reopen", "limit"]),
        ),
        max_size=60,
    ),
    budget=st.sampled_from([0, 1, 400, 900, 5_000, 100_000]),
)
def test_rows_are_found_though_disk_is_not_asked_for_those_of_later_times(
    steps: list[tuple[bytes, int, bytes | None] | str], budget: int
) -> None:
    backing = CountedBacking()
    buffer = WriteBuffer(backing, cache_bytes=budget)
    buffer.on_disk(-1)
    now: dict[bytes, bytes | None] = {}
    committed = now.copy()
    latest = committed_latest = 0
    for step in steps:
        match step:
            case "commit":
                backing.write(buffer.dirty)
                buffer.committed(latest)
                committed, committed_latest = dict(now), latest
            case "discard" | "reopen":
                buffer.discard()
                now, latest = dict(committed), committed_latest
                if step == "reopen":
                    buffer = WriteBuffer(backing, cache_bytes=budget)
                    buffer.on_disk(latest)
            case "limit":
                buffer.limit_cache(budget // 2)
            case (key, time, value):
                row = bytes([time]) + key
                if row not in buffer.dirty:
                    assert buffer.get_committed(row, time) == now.get(row)
                buffer.put(row, value)
                now[row] = value
                latest = max(latest, time)
    assert all(buffer.get(row) == value for row, value in now.items())


def test_disk_is_asked_only_for_times_up_to_what_left_the_cache() -> None:
    backing = CountedBacking()
    buffer = WriteBuffer(backing, cache_bytes=2 * (ENTRY_BYTES + 2))
    buffer.on_disk(3)
    asked = []
    for time in (3, 4, 5, 6, 7, 8):
        buffer.get_committed(b"a%d" % time, time)
        asked.append(backing.asked)
        buffer.put(b"b%d" % time, b"")
        backing.write(buffer.dirty)
        buffer.committed(time)
    # Two rows stay, so what is missing is two commits behind.
    assert asked == [1, 1, 1, 1, 1, 1]
    buffer.get_committed(b"a6", 6)
    assert backing.asked == 2
    buffer.get_committed(b"a7", 7)
    assert backing.asked == 2


def test_a_store_that_was_empty_is_read_from_disk_only_after_rows_have_left_the_cache() -> None:
    backing = CountedBacking()
    buffer = WriteBuffer(backing, cache_bytes=2 * (ENTRY_BYTES + 2))
    buffer.on_disk(-1)
    for number in range(3):
        assert buffer.get(b"no") is None
        assert backing.asked == 0
        buffer.put(b"b%d" % number, b"")
        backing.write(buffer.dirty)
        buffer.committed(0)
    assert buffer.get(b"b0") == b""
    assert backing.asked == 1


def test_writes_during_an_iteration_do_not_change_it() -> None:
    backing = MemoryBacking()
    backing.write({b"a": b"1", b"c": b"3"})
    buffer = WriteBuffer(backing, cache_bytes=0)
    buffer.put(b"b", b"2")
    seen = []
    for key, value in buffer.scan(None, None):
        buffer.put(key, None)
        buffer.put(key + b"+", b"new")
        seen.append((key, value))
    assert seen == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert [key for key, _ in buffer.scan(None, None)] == [b"a+", b"b+", b"c+"]


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(
                st.sampled_from([b"", b"a", b"a" + bytes(4)]),
                st.integers(0, 99),
                st.one_of(st.none(), st.binary(max_size=5)),
            ),
            st.booleans(),
        ),
        max_size=40,
    ),
    budget=st.sampled_from([0, 1500, 1_000_000]),
)
def test_groups_are_the_rows_of_a_key_whatever_the_budget(
    steps: list[tuple[bytes, int, bytes | None] | bool], budget: int
) -> None:
    backing = MemoryBacking()
    buffer = WriteBuffer(backing, cache_bytes=0)
    groups = RowGroups(buffer, suffix_bytes=8, interval_ms=100, cache_bytes=budget)
    now: dict[tuple[bytes, bytes], bytes] = {}
    committed: dict[tuple[bytes, bytes], bytes] = {}
    for step in steps:
        if step is True:
            commit(buffer, backing)
            groups.committed()
            committed = dict(now)
        elif step is False:
            buffer.discard()
            groups.clear()
            now = dict(committed)
        else:
            key, time, value = step
            group, suffix = bytes(8) + key, time.to_bytes(8, "big")
            groups.put(group, suffix, value)
            now.pop((group, suffix), None)
            if value is not None:
                now[group, suffix] = value
        for key in (b"", b"a", b"a" + bytes(4)):
            group = bytes(8) + key
            first, before = (20).to_bytes(8, "big"), (70).to_bytes(8, "big")
            rows = sorted((s, v) for (g, s), v in now.items() if g == group and first <= s < before)
            assert groups.rows(group, first, before) == rows
        assert groups.memory_bytes <= budget
