"""Keys and values that a store cannot take are the user's mistake, and said so."""

from typing import Any

import pytest

from broker.errors import SerdeError
from broker.serde import (
    BytesSerde,
    DoubleSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    Serde,
    StringSerde,
)
from streams.errors import StoreError
from streams.state.store import StoreKind, StoreSpec
from streams.state.task_state import TaskState

SPECS = (
    StoreSpec("plain", StoreKind.KEY_VALUE),
    StoreSpec("timed", StoreKind.TIMESTAMPED_KEY_VALUE),
    StoreSpec("windows", StoreKind.TIMESTAMPED_WINDOW, retention_ms=1000, window_size_ms=10),
    StoreSpec("sessions", StoreKind.SESSION, retention_ms=1000),
    StoreSpec("prices", StoreKind.VERSIONED, history_ms=1000),
    StoreSpec("recent", StoreKind.LRU, entries_max=3),
)
TIMES: dict[str, tuple[int, ...]] = {"timed": (1,), "windows": (1, 0), "prices": (1,)}


def opened(key: Serde[Any], value: Serde[Any]) -> TaskState:
    return TaskState(SPECS, directory=None, default_key_serde=key, default_value_serde=value)


def put(state: TaskState, name: str, key: object, value: object) -> None:
    if name == "sessions":
        state.store(name).put(key, 1, 2, value)
    else:
        state.store(name).put(key, value, *TIMES.get(name, ()))


@pytest.mark.parametrize("serde", [StringSerde(), LongSerde(), JsonSerde(), BytesSerde()])
@pytest.mark.parametrize("name", [spec.name for spec in SPECS])
def test_a_key_that_is_none_is_refused(name: str, serde: Serde[Any]) -> None:
    state = opened(serde, LongSerde())
    with pytest.raises(StoreError, match="a key is None"):
        put(state, name, None, 1)
    assert state.changes() == []


@pytest.mark.parametrize(
    ("serde", "wrong"),
    [
        (StringSerde(), 5),
        (StringSerde(), "\ud800"),
        (LongSerde(), True),
        (LongSerde(), 1 << 63),
        (LongSerde(), 1.5),
        (JsonSerde(), object()),
        (BytesSerde(), "text"),
    ],
)
@pytest.mark.parametrize("name", [spec.name for spec in SPECS])
def test_what_the_serde_refuses_is_the_serdes_error(
    name: str, serde: Serde[Any], wrong: object
) -> None:
    state = opened(serde, serde)
    with pytest.raises(SerdeError, match="cannot encode"):
        put(state, name, wrong, None)
    state = opened(LongSerde(), serde)
    with pytest.raises(SerdeError, match="cannot encode"):
        put(state, name, 1, wrong)
    assert state.changes() == []


@pytest.mark.parametrize("serde", [StringSerde(), LongSerde(), JsonSerde(), DoubleSerde()])
def test_bytes_of_another_serde_are_the_serdes_error(serde: Serde[Any]) -> None:
    state = opened(LongSerde(), serde)
    key = (1).to_bytes(8, "big")
    for name in ("plain", "timed"):
        state.restore(name, [(key, b"\xff\xff\xff", 0)], 1)
        with pytest.raises(SerdeError, match=rf'(?s)cannot decode.*"{name}-changelog"'):
            state.store(name).get(1)


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (StringSerde(), "ä"),
        (LongSerde(), -7),
        (DoubleSerde(), 1.5),
        (IntegerSerde(), 3),
        (JsonSerde(), {"a": [1, None]}),
        (BytesSerde(), b""),
    ],
)
@pytest.mark.parametrize("name", ["plain", "timed"])
def test_values_are_written_as_their_serde_writes_them(
    name: str, serde: Serde[Any], value: object
) -> None:
    state = opened(LongSerde(), serde)
    put(state, name, 1, value)
    ((_, rows),) = state.changes()
    assert rows[0][1] == serde.serialize("t", value)
    found = state.store(name).get(1)
    assert found == (value if name == "plain" else (value, 1))
