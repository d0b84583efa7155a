"""The reference: what queries must compute, on rows small enough to be checked by hand."""

from collections import Counter
from random import Random

from millstream.simulation.workloads import reference
from millstream.simulation.workloads.reference import Inputs, Order, Shape
from millstream.simulation.workloads.sql import SqlWorkload

ORDERS = [
    Order("o0", "ann", 10, 0, 0),
    Order("o1", "bob", 20, 1, 1_000),
    Order("o2", "ann", 30, 2, 15_000),
    Order("o3", "ann", 5, 3, 61_000),
]
GIVEN = Inputs(
    ORDERS,
    {
        "ann": {"CITY": "a", "TOWN": "x", "N": 0},
        "bob": {"CITY": "b", "TOWN": "x", "N": 1, "NOTE": "new"},
    },
    {"x", "y"},
)


def test_aggregates_by_hand() -> None:
    assert reference.totals(GIVEN) == Counter({("ann", 3, 45): 1, ("bob", 1, 20): 1})
    assert reference.per_minute(GIVEN) == Counter(
        {("ann", 0, 2): 1, ("bob", 0, 1): 1, ("ann", 60_000, 1): 1}
    )
    assert reference.sessions(GIVEN) == Counter(
        {("ann", 0, 15_000, 2): 1, ("ann", 61_000, 61_000, 1): 1, ("bob", 1_000, 1_000, 1): 1}
    )
    assert reference.by_town(GIVEN) == Counter({("x", 2): 1})


def test_a_join_and_a_copy_by_hand() -> None:
    assert reference.with_city(GIVEN)["bob", "o1", "b"] == 1
    assert reference.copy_of_customers(GIVEN) == Counter(
        {("ann", "a", "x", 0, None): 1, ("bob", "b", "x", 1, "new"): 1}
    )


def test_records_are_read_in_both_formats_and_the_last_of_a_table_counts() -> None:
    shape = Shape(("ORDERS", "AMOUNT"), ("CUSTOMER",), is_table=True)
    first, last = (0, b"ann", b"1,10", 5), (0, b"ann", b'{"ORDERS": 2, "AMOUNT": 40}', 6)
    found = [
        *reference.rows([first], shape, "DELIMITED"),
        *reference.rows([(0, b"bob", b"1,20", 5), (0, b"bob", None, 6)], shape, "DELIMITED"),
        *reference.rows([last], shape, "JSON"),
    ]
    assert reference.result(found, shape) == Counter({("ann", 2, 40): 1})


def test_keys_of_windows_have_their_times() -> None:
    start, end = (5).to_bytes(8, "big"), (9).to_bytes(8, "big")
    shape = Shape(("ORDERS",), ("CUSTOMER",), window="session", is_table=True)
    found = reference.rows([(0, b"ann" + end + start, b"1", 0)], shape, "DELIMITED")
    assert reference.result(found, shape) == Counter({("ann", 5, 9, 1): 1})


def test_a_difference_names_what_is_missing_and_what_is_too_much() -> None:
    shown = reference.difference(Counter({("a",): 2}), Counter({("a",): 1, ("b",): 1}))
    assert shown == "lacks ('b',) and should not have ('a',)"
    assert not reference.difference(Counter({("a",): 1}), Counter({("a",): 1}))


def test_a_seed_is_one_script() -> None:
    def names(seed: int) -> list[str]:
        return [step.name for step in SqlWorkload(Random(seed)).script.steps]

    assert names(1) == names(1)
    assert len({tuple(names(seed)) for seed in range(20)}) > 15
