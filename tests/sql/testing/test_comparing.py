"""What counts as the same record."""

from decimal import Decimal

import pytest

from sql.testing.comparing import KeyWindow, TypedRecord, difference, same

SAME: list[tuple[object, object]] = [
    (None, None),
    (True, True),
    (3, 3),
    (3, Decimal("3.0")),
    (0.1 + 0.2, Decimal("0.3")),
    (1e12, 1_000_000_000_000),
    (Decimal("1.10"), Decimal("1.10")),
    (Decimal("1.10"), "1.10"),
    (Decimal("3"), 3),
    (b"\x01\x02", "AQI="),
    ([1, [2]], [1, [2]]),
    ({"A": 1}, {"a": 1}),
    ({"a": 1}, {"a": 1}),
    ({"A": None}, {"Misspelt": None}),
]
DIFFERENT: list[tuple[object, object]] = [
    (0, None),
    (None, 0),
    (1, True),
    (True, 1),
    (3, 4),
    (1.5, Decimal("1.6")),
    (Decimal("1.1"), Decimal("1.10")),
    (Decimal("3.0"), 3),
    ("3", 3),
    (3, "3"),
    ("a", "A"),
    (Decimal("1"), "one"),
    ([1], [1, 2]),
    ({"A": 1, "B": 2}, {"A": 1}),
    ({"A": 1}, [1]),
    ([1], {"A": 1}),
]


@pytest.mark.parametrize(("actual", "expected"), SAME)
def test_values_that_are_the_same(actual: object, expected: object) -> None:
    assert same(actual, expected)


@pytest.mark.parametrize(("actual", "expected"), DIFFERENT)
def test_values_that_are_not(actual: object, expected: object) -> None:
    assert not same(actual, expected)


RECORD = TypedRecord("k", {"A": 1}, 5, KeyWindow(0, 10, "time"), (("h", b"x"),))
EXPECTED: dict[str, object] = {
    "key": "k",
    "value": {"A": 1},
    "timestamp": 5,
    "window": {"start": 0, "end": 10, "type": "time"},
    "headers": [{"key": "h", "value": "eA=="}],
}


def test_an_equal_record_has_no_difference() -> None:
    assert difference(RECORD, EXPECTED) is None


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"key": "other"}, "key"),
        ({"value": {"A": 2}}, "value"),
        ({"value": None}, "value"),
        ({"timestamp": 6}, "timestamp"),
        ({"window": None}, "window"),
        ({"window": {"start": 0, "end": 10, "type": "session"}}, "window"),
        ({"headers": None}, "headers"),
        ({"headers": [{"key": "h", "value": None}]}, "headers"),
    ],
)
def test_the_part_that_differs_is_named(changed: dict[str, object], named: str) -> None:
    found = difference(RECORD, EXPECTED | changed)
    assert found is not None
    assert found.startswith(f"{named} is ")


def test_a_time_that_is_not_expected_is_any() -> None:
    assert difference(RECORD, EXPECTED | {"timestamp": None}) is None
    assert difference(RECORD, EXPECTED | {"timestamp": 0}, any_time=True) is None
