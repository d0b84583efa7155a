"""Outputs: how topics are compared, and their differences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams.serdes import serde_of

Stored = Sequence[tuple[bytes | None, bytes | None]]  # keys and values, in the order of the topic
Result = Mapping[Any, Any]  # by key: a value, or a list of values; Any: as deserialized


@dataclass(frozen=True, slots=True)
class Output:
    """How a topic is read and compared; created by `table` and `stream`."""

    key: object
    value: object
    is_table: bool
    is_ordered: bool = True

    def result(self, topic: str, stored: Stored) -> Result:
        """Decode records to the compared values, by key."""
        key_serde, value_serde = serde_of(self.key, at=topic), serde_of(self.value, at=topic)
        result: dict[Any, Any] = {}
        for key_bytes, value_bytes in stored:
            key = _hashable(key_serde.deserialize(topic, key_bytes))
            value = value_serde.deserialize(topic, value_bytes)
            if not self.is_table:
                result.setdefault(key, []).append(value)
            elif value is None:
                result.pop(key, None)
            else:
                result[key] = value
        return result

    def differences(self, topic: str, expected: Result, actual: Result) -> Iterator[str]:
        """Describe differences, key by key."""
        for key in [*expected, *(key for key in actual if key not in expected)]:
            before, after = expected.get(key, _NOTHING), actual.get(key, _NOTHING)
            if not self._is_same(before, after):
                shown = f'output "{topic}", key {key!r}'
                yield f"{shown}: expected {_shown(before)}, found {_shown(after)}"

    def _is_same(self, before: object, after: object) -> bool:
        if self.is_ordered or not isinstance(before, list) or not isinstance(after, list):
            return before == after
        return Counter(map(_hashable, before)) == Counter(map(_hashable, after))


def table(*, key: object = str, value: object = dict) -> Output:
    """Compare the last value of each key; keys and values are read with types or serdes.

    >>> outputs = {"totals": table(key=str, value=int)}
    """
    return Output(key, value, is_table=True)


def stream(*, key: object = str, value: object = dict, ordered: bool = True) -> Output:
    """Compare all values of each key, in order; or in any order, if not `ordered`.

    >>> outputs = {"alarms": stream(key=str, value=dict, ordered=False)}
    """
    return Output(key, value, is_table=False, is_ordered=ordered)


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()
SHOWN_MAX = 400


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _hashable(value: Any) -> Any:  # Any: any deserialized value
    """The value itself, or a hashable representation."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
