"""Window stores give the same with the C extension as without it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from broker.serde import JsonSerde, LongSerde, Serde, StringSerde
from streams.state import window
from streams.state.store import StoreKind, StoreSpec
from streams.state.task_state import TaskState

_windows = pytest.importorskip("streams.state._windows", reason="the C extension is not built")

SPEC = StoreSpec(
    "windows", StoreKind.TIMESTAMPED_WINDOW, retention_ms=150_000, window_size_ms=60_000
)


class Text(str):
    """A text that is not exactly a str."""

    __slots__ = ()


TEXTS: list[Any] = ["", "a", "a\0", "ab", "äß", "x" * 40, Text("a"), "\ud800"]
ROWS: list[Any] = [("a", 1), (None, 2.5, True), (["a"], 1), ["a", 1], (object(),), b"a"]
KEYS = st.sampled_from([*TEXTS, *ROWS, 7, None])
VALUE_LIST: list[Any] = [None, 0, {"count": 1, "sum": 2.5}, "text", [], {"bad": object()}]
VALUES = st.sampled_from(VALUE_LIST)
STARTS = st.sampled_from([-1, 0, 60_000, 120_000, 180_000, 240_000, 600_000, 1 << 70])
TIMES = st.sampled_from([-5, 0, 7, 1 << 40, 1 << 70, True])
STEPS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.sampled_from([60_000, 120_000]), VALUES, st.sampled_from([7, 8])),
        st.tuples(KEYS, STARTS, VALUES, TIMES),
        st.sampled_from(["commit", "discard", "fetch", "scan"]),
    ),
    max_size=40,
)


def opened(directory: Path, key_serde: Serde[Any], buffer_bytes: int = 0) -> TaskState:
    return TaskState(
        [SPEC],
        directory=directory,
        default_key_serde=key_serde,
        default_value_serde=JsonSerde(),
        buffer_bytes=buffer_bytes,
    )


@contextmanager
def both(key_serde: Serde[Any], buffer_bytes: int) -> Iterator[list[TaskState]]:
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        states = [opened(Path(place), key_serde, buffer_bytes) for place in (first, second)]
        plain = states[1].store("windows")
        last = window._LastRow(plain.parts.codec, plain.parts.expiry.interval_ms)
        plain.get, plain.put = (
            window._open_get(plain.parts, last),
            window._open_put(plain.parts, last),
        )
        plain.changes = window._WindowRows(plain.parts, timestamped=True).changes
        try:
            yield states
        finally:
            for state in states:
                state.close()


def outcome(state: TaskState, step: Any) -> list[Any]:
    """What a step gives, or which error it raises."""
    store = state.store("windows")
    if step == "commit":
        rows = state.changes()
        state.commit({})
        return rows
    if step == "discard":
        state.discard()
        return []
    if step == "fetch":
        key = 7 if isinstance(store.parts.codec.key_serde, LongSerde) else "a"
        return list(store.fetch(key, 0, 600_000))
    if step == "scan":
        return list(store.all())
    key, start, value, time = step
    found: list[Any] = []
    for function, *arguments in (
        (store.get, key, start),
        (store.put, key, value, time, start),
        (store.get, key, start),
    ):
        try:
            found.append(function(*arguments))
        except Exception as error:  # whatever it is, both must raise it
            found.append((type(error), str(error)))
    return found


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(serde=StringSerde(), steps=[("", 1 << 70, None, -5), "commit"], buffer_bytes=0)
@given(
    serde=st.sampled_from([StringSerde(), JsonSerde(), LongSerde()]),
    steps=STEPS,
    buffer_bytes=st.sampled_from([0, 1500, 1 << 20]),
)
def test_every_step_gives_the_same(serde: Serde[Any], steps: list[Any], buffer_bytes: int) -> None:
    with both(serde, buffer_bytes) as (compiled, plain):
        for step in steps:
            assert outcome(compiled, step) == outcome(plain, step)
            assert compiled.dirty_bytes == plain.dirty_bytes
            assert compiled.memory_bytes == plain.memory_bytes


def test_a_key_that_changed_after_its_window_was_read_has_its_new_bytes(tmp_path: Path) -> None:
    state = opened(tmp_path, JsonSerde())
    store, inside = state.store("windows"), ["a"]
    for key in (inside, (inside, 1)):
        inside[:] = ["a"]
        assert store.get(key, 60_000) is None
        inside[:] = ["b"]
        store.put(key, 1, 7, 60_000)
        assert store.get(key, 60_000) == (1, 7)
        inside[:] = ["a"]
        assert store.get(key, 60_000) is None
    state.close()
