"""Every kind of store does what a plain Python model does, whatever happens around it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.state.store import StoreKind, StoreSpec
from tests.streams.state.models import (
    NAME,
    REFUSED,
    ModelledState,
    SegmentedModel,
    VersionedModel,
)

pytestmark = pytest.mark.slow

# Keys that are beginnings of others, with the bytes that times are made of.
KEY_LIST = [b"", b"a", b"a\0", b"a" + bytes(8), b"a" + bytes(12), b"ab", b"\xff"]
KEYS = st.sampled_from(KEY_LIST)
VALUES = st.one_of(st.none(), st.binary(max_size=3), st.binary(max_size=3))
RETENTION_MS = 150_000
# Ends of segments (75 s) and of the retention, and what is next to them.
TIME_LIST = [0, 1, 2, 74_999, 75_000, 75_001, 150_000, 150_001, 150_002, 225_000, 299_999, 400_000]
TIMES = st.sampled_from(TIME_LIST)
LIFE = st.sampled_from(["commit", "commit", "discard", "reopen", "move"])


def steps_of(put: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Mostly puts, and now and then something that happens to the task."""
    return st.lists(st.one_of(put, put, put, LIFE), max_size=40)


PLACES = pytest.mark.parametrize("place", ["disk", "memory"])
RUNS = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@contextmanager
def modelled(spec: StoreSpec, place: str) -> Iterator[ModelledState]:
    directory = Path(tempfile.mkdtemp()) if place == "disk" else None
    state = ModelledState(spec, directory)
    try:
        yield state
    finally:
        state.state.close()
        if directory is not None:
            shutil.rmtree(directory)


def live(state: ModelledState, action: str, now: Any, committed: Any) -> tuple[Any, Any]:
    """Let something happen; the model now, and the model of the last commit."""
    if action == "commit":
        state.commit()
        return now, now.copy()
    if action == "discard":
        state.discard()
    elif action == "reopen":
        state.reopen()
    else:
        state.restore_from_nothing()
    return committed.copy(), committed


def shared(entries: list[Any], *views: Any) -> None:
    for view in views:
        assert list(view) == entries


@PLACES
@RUNS
@given(steps=steps_of(st.tuples(KEYS, VALUES, TIMES)), ends=st.data())
def test_key_value_stores(place: str, steps: list[Any], ends: st.DataObject) -> None:
    with modelled(StoreSpec(NAME, StoreKind.TIMESTAMPED_KEY_VALUE), place) as state:
        now: dict[bytes, tuple[bytes, int]] = {}
        committed = now.copy()
        for step in steps:
            if isinstance(step, str):
                now, committed = live(state, step, now, committed)
            else:
                key, value, time = step
                assert state.store.get(key) == now.get(key)
                state.store.put(key, value, time)
                if value is None:
                    now.pop(key, None)
                else:
                    now[key] = (value, time)
            first, last = ends.draw(KEYS), ends.draw(KEYS)
            entries = sorted(now.items())
            assert state.view.get(first) == now.get(first)
            shared(entries, state.store.all(), state.view.all())
            shared(entries[::-1], state.store.reverse_all(), state.view.reverse_all())
            inside = [entry for entry in entries if first <= entry[0] <= last]
            shared(inside, state.store.range(first, last), state.view.range(first, last))
            shared(inside[::-1], state.store.reverse_range(first, last))
            shared([e for e in entries if e[0].startswith(first)], state.store.prefix_scan(first))
            shared([e for e in entries if e[0] >= first], state.store.range(first, None))
            shared([e for e in entries[::-1] if e[0] <= last], state.view.reverse_range(None, last))


@PLACES
@RUNS
@given(steps=steps_of(st.tuples(KEYS, VALUES, TIMES)), ends=st.data())
def test_window_stores(place: str, steps: list[Any], ends: st.DataObject) -> None:
    spec = StoreSpec(
        NAME, StoreKind.TIMESTAMPED_WINDOW, retention_ms=RETENTION_MS, window_size_ms=10
    )
    with modelled(spec, place) as state:
        now = SegmentedModel(RETENTION_MS)
        committed = now.copy()
        for step in steps:
            if isinstance(step, str):
                now, committed = live(state, step, now, committed)
            else:
                key, value, start = step
                taken = now.put((key, start), start, value)
                assert (state.store.put(key, value, 7, start) != REFUSED) == taken
            if isinstance(step, str) or step is steps[-1]:
                from_ms, to_ms = ends.draw(TIMES), ends.draw(TIMES)
                for key in KEY_LIST:
                    check_windows(state, now, (key, ends.draw(KEYS)), (from_ms, to_ms))
                    check_windows(state, now, (key, key), (0, 1 << 40))


def check_windows(
    state: ModelledState, now: SegmentedModel, keys_of: tuple[bytes, bytes], span: tuple[int, int]
) -> None:
    (key, last), (from_ms, to_ms) = keys_of, span
    rows = [(*row, value) for row, value in now.rows.items() if now.is_shown(row[1])]
    of_key = sorted((s, (v, 7)) for k, s, v in rows if k == key and from_ms <= s <= to_ms)
    found = {s: (v, 7) for k, s, v in rows if k == key}
    assert state.store.get(key, from_ms) == state.view.get(key, from_ms) == found.get(from_ms)
    for reads in (state.store, state.view):
        assert list(reads.fetch(key, from_ms, to_ms)) == of_key
        assert list(reads.backward_fetch(key, from_ms, to_ms)) == of_key[::-1]
        inside = [((k, s, s + 10), (v, 7)) for k, s, v in rows if from_ms <= s <= to_ms]
        by_start = sorted(inside, key=lambda row: (row[0][1], row[0][0] + bytes(20)))
        listed = list(reads.fetch_all(from_ms, to_ms))
        assert sorted(listed) == sorted(inside)
        assert [row[0][1] for row in listed] == [row[0][1] for row in by_start]
        keys = [row for row in inside if key <= row[0][0] <= last]
        assert sorted(reads.fetch_keys(key, last, from_ms, to_ms)) == sorted(keys)
        everything = [((k, s, s + 10), (v, 7)) for k, s, v in rows]
        assert sorted(reads.all()) == sorted(everything)


@PLACES
@RUNS
@given(steps=steps_of(st.tuples(KEYS, VALUES, TIMES)), ends=st.data())
def test_window_stores_with_duplicates(place: str, steps: list[Any], ends: st.DataObject) -> None:
    spec = StoreSpec(NAME, StoreKind.WINDOW, retention_ms=RETENTION_MS, retain_duplicates=True)
    with modelled(spec, place) as state:
        now = SegmentedModel(RETENTION_MS)
        committed = now.copy()
        for number, step in enumerate(steps):
            if isinstance(step, str):
                now, committed = live(state, step, now, committed)
            else:
                key, value, start = step
                if value is None:
                    assert state.store.put(key, None, start) == 0
                else:
                    taken = now.put((key, start, number), start, value)
                    assert (state.store.put(key, value, start) != REFUSED) == taken
            from_ms, to_ms = ends.draw(TIMES), ends.draw(TIMES)
            for key in KEY_LIST:
                expected = sorted(
                    (s, n, v)
                    for (k, s, n), v in now.rows.items()
                    if k == key and from_ms <= s <= to_ms and now.is_shown(s)
                )
                found = list(state.store.fetch(key, from_ms, to_ms))
                assert found == [(s, v) for s, _, v in expected]


@PLACES
@RUNS
@given(
    steps=steps_of(st.tuples(KEYS, VALUES, TIMES, st.sampled_from([0, 1, 75_000]))),
    ends=st.data(),
)
def test_session_stores(place: str, steps: list[Any], ends: st.DataObject) -> None:
    with modelled(StoreSpec(NAME, StoreKind.SESSION, retention_ms=RETENTION_MS), place) as state:
        now = SegmentedModel(RETENTION_MS)
        committed = now.copy()
        for step in steps:
            if isinstance(step, str):
                now, committed = live(state, step, now, committed)
            else:
                key, value, start, length = step
                end = start + length
                taken = now.put((key, start, end), end, value)
                assert (state.store.put(key, start, end, value) != REFUSED) == taken
            if isinstance(step, str) or step is steps[-1]:
                span = ends.draw(TIMES), ends.draw(TIMES)
                for key in KEY_LIST:
                    check_sessions(state, now, key, span)


def check_sessions(
    state: ModelledState, now: SegmentedModel, key: bytes, span: tuple[int, int]
) -> None:
    from_ms, to_ms = span
    rows = [(row, value) for row, value in now.rows.items() if now.is_shown(row[2])]
    of_key = sorted(
        ((row, value) for row, value in rows if row[0] == key),
        key=lambda row: (row[0][2], row[0][1]),
    )
    for reads in (state.store, state.view):
        assert list(reads.fetch(key)) == of_key
        found = [row for row in of_key if row[0][2] >= from_ms and row[0][1] <= to_ms]
        assert list(reads.find_sessions(key, from_ms, to_ms)) == found
        ended = list(reads.sessions_ended(from_ms, to_ms))
        assert sorted(ended) == sorted(row for row in rows if from_ms <= row[0][2] <= to_ms)
        assert [row[0][2] for row in ended] == sorted(row[0][2] for row in ended)
        assert sorted(reads.all()) == sorted(rows)
        for (_, start, end), value in of_key:
            assert reads.get(key, start, end) == value


@PLACES
@RUNS
@given(steps=steps_of(st.tuples(st.sampled_from(KEY_LIST[1:4]), VALUES, TIMES)), ends=st.data())
def test_versioned_stores(place: str, steps: list[Any], ends: st.DataObject) -> None:
    spec = StoreSpec(NAME, StoreKind.VERSIONED, history_ms=RETENTION_MS)
    with modelled(spec, place) as state:
        now = VersionedModel(RETENTION_MS)
        committed = now.copy()
        for step in steps:
            if isinstance(step, str):
                now, committed = live(state, step, now, committed)
            else:
                key, value, time = step
                assert state.store.put(key, value, time) == now.put(key, value, time)
            if isinstance(step, str) or step is steps[-1]:
                span = ends.draw(TIMES), ends.draw(TIMES)
                for key in KEY_LIST:
                    check_versions(state, now, key, span)


def check_versions(
    state: ModelledState, now: VersionedModel, key: bytes, span: tuple[int, int]
) -> None:
    from_ms, to_ms = span
    newest = {k: now.get_as_of(k, 1 << 40) for k in now.versions}
    alive = [(k, record) for k, record in sorted(newest.items()) if record]
    for reads in (state.store, state.view):
        for time in TIME_LIST:
            assert reads.get_as_of(key, time) == now.get_as_of(key, time)
        assert reads.get(key) == now.get_as_of(key, 1 << 40)
        listed = list(reads.versions(key, from_ms, to_ms, newest_first=False))
        assert listed == now.shown(key, from_ms, to_ms)
        everything = now.shown(key, 0, 1 << 40)
        assert list(reads.versions(key)) == everything[::-1]
        assert list(reads.all()) == alive


@RUNS
@given(steps=st.lists(st.one_of(st.tuples(KEYS, VALUES), KEYS, LIFE), max_size=40))
def test_lru_stores_keep_what_was_used_last(steps: list[Any]) -> None:
    with modelled(StoreSpec(NAME, StoreKind.LRU, entries_max=3), "memory") as state:
        now: dict[bytes, bytes] = {}
        committed = now.copy()
        order_known = True
        for step in steps:
            if isinstance(step, str):
                now, committed = live(state, step, now, committed)
                order_known = order_known and step == "commit"
            elif isinstance(step, bytes):
                assert state.store.get(step) == now.get(step)
                if step in now:
                    now[step] = now.pop(step)
            else:
                key, value = step
                state.store.put(key, value)
                now.pop(key, None)
                if value is not None:
                    now[key] = value
                if len(now) > 3 and not order_known:
                    gone = set(now) - {k for k, _ in state.store.all()}
                    assert len(gone) == 1
                    del now[gone.pop()]
                elif len(now) > 3:
                    del now[next(iter(now))]
            assert dict(state.store.all()) == now
            assert state.store.approximate_num_entries() == len(now)
