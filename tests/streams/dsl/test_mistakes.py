"""Mistakes in the use of the DSL are told when the topology is built, with the user's line."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from streams import Processor, StoreKind, StoreSpec, StreamsBuilder
from streams.errors import TopologyError
from tests.streams.topology.topologies import Drop

ONE = Drop()
NO_SERDE: Any = 3

Mistake = Callable[[StreamsBuilder], object]


class Idle(Processor[str, str, str, str]):
    """Forgets to say what it does."""


def untyped(builder: StreamsBuilder) -> Any:
    """The builder, for mistakes that types would find."""
    return builder


def lines(builder: StreamsBuilder) -> Any:
    """A stream; Any, since mistakes are what types would find."""
    return builder.stream("lines", key=str, value=str)


def users(builder: StreamsBuilder) -> Any:
    """A table."""
    return builder.table("users", key=str, value=str)


MISTAKES: dict[str, tuple[Mistake, str]] = {
    "a predicate that is none": (lambda b: lines(b).filter("x"), "predicate is 'x'"),
    "a mapper that is none": (lambda b: users(b).map_values(3), "mapper is 3"),
    "a name with a blank": (
        lambda b: lines(b).filter(bool, name="my filter"),
        'name "my filter" is not allowed',
    ),
    "a topic with a blank": (lambda b: b.stream("my topic"), 'topic "my topic" is not allowed'),
    "no topic": (lambda b: b.stream([]), "no topic is given"),
    "a type without a serde": (
        lambda b: b.stream("x", key=complex),
        '"complex" has no serde',
    ),
    "a serde that is none": (lambda b: b.stream("x", value=NO_SERDE), '"3" has no serde'),
    "an unknown offset reset": (
        lambda b: b.stream("x", offset_reset="first"),
        '"offset_reset" is "first"',
    ),
    "an unknown option of a stream": (
        lambda b: untyped(b).stream("x", nam="x"),
        '"nam" is not an option here',
    ),
    "an unknown option of a table": (
        lambda b: untyped(b).table("x", stor="x"),
        'did you mean "store"?',
    ),
    "an option of a table for a global store": (
        lambda b: untyped(b).add_global_store(
            StoreSpec("g", StoreKind.KEY_VALUE), "g", Drop, caching=True
        ),
        '"caching" is not an option here',
    ),
    "an unknown option of a join": (
        lambda b: lines(b).join(users(b), print, nmae="x"),
        'did you mean "name"?',
    ),
    "no partitions": (lambda b: lines(b).repartition(partitions=0), '"partitions" is 0'),
    "a merge with a table": (lambda b: lines(b).merge(users(b)), "is not a Stream"),
    "a merge over builders": (
        lambda b: lines(b).merge(lines(StreamsBuilder())),
        "the two streams come from different builders",
    ),
    "a branch after the default": (
        lambda b: _branch_after_default(b),
        "the split already has a default branch",
    ),
    "a processor without process()": (
        lambda b: lines(b).process(Idle),
        "the supplier failed: TypeError: Can't instantiate abstract class Idle",
    ),
    "a supplier that is none": (lambda b: lines(b).process("x"), "the supplier is 'x'"),
    "a supplier that gives one object": (
        lambda b: lines(b).process_values(lambda: ONE),
        "the supplier returned the same Processor twice",
    ),
    "a versioned global table": (
        lambda b: b.global_table("g", versioned_history=1000),
        "a global table cannot be versioned",
    ),
    "an unknown optimisation": (
        lambda b: b.build(optimize="everything"),
        '"everything" is not an optimisation',
    ),
}


def _branch_after_default(builder: StreamsBuilder) -> None:
    split = lines(builder).split()
    split.default_branch()
    split.branch(bool)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_where_it_is_made(mistake: str) -> None:
    make, what = MISTAKES[mistake]
    with pytest.raises(TopologyError) as raised:
        make(StreamsBuilder())
    text = str(raised.value)
    assert what in text
    assert re.search(rf"at: {re.escape(__file__)}:\d+\n  hint: ", text)


BUILD_MISTAKES: dict[str, tuple[Mistake, str]] = {
    "two operations of one name": (
        lambda b: lines(b).filter(bool, name="mine").peek(print, name="mine"),
        'node "mine" already exists',
    ),
    "two tables of one topic": (
        lambda b: (users(b), users(b)),
        'topic "users" is read twice, and at least once as a table',
    ),
    "a table and a stream of one topic": (
        lambda b: (users(b), b.stream("users")),
        'topic "users" is read twice, and at least once as a table',
    ),
    "topics that overlap": (
        lambda b: (b.stream(["a", "b"]), b.stream(["b", "c"])),
        "two streams read overlapping but different topics: ['a', 'b'] and ['b', 'c']",
    ),
    "two resets for one topic": (
        lambda b: (
            b.stream("a", offset_reset="earliest"),
            b.stream("a", offset_reset="latest"),
        ),
        "two streams of the same topics have different offset resets",
    ),
    "an unknown store": (
        lambda b: lines(b).process(Drop, stores=["counts"]),
        'uses store "counts", which does not exist',
    ),
    "two stores of one name": (
        lambda b: (
            users(b).filter(bool, store="same"),
            b.add_state_store(StoreSpec("same", StoreKind.KEY_VALUE)),
        ),
        'store "same" already exists',
    ),
    "a sink that is its own source": (
        lambda b: lines(b).to("lines"),
        'writes topic "lines", which its parent "KSTREAM-SOURCE-0000000000" reads',
    ),
    "nothing at all": (lambda b: None, "the topology has no node"),
}


@pytest.mark.parametrize("mistake", BUILD_MISTAKES)
def test_what_only_the_whole_shows_is_told_by_build(mistake: str) -> None:
    make, what = BUILD_MISTAKES[mistake]
    builder = StreamsBuilder()
    make(builder)
    with pytest.raises(TopologyError) as raised:
        builder.build()
    text = str(raised.value)
    assert what in text
    if mistake != "nothing at all":
        assert re.search(rf"at: {re.escape(__file__)}:\d+", text)


def test_the_line_is_that_of_the_operation_not_of_build() -> None:
    builder = StreamsBuilder()
    lines(builder).process(Drop, stores=["counts"])
    with pytest.raises(TopologyError) as raised:
        builder.build()
    found = re.search(r"at: .*:(\d+)", str(raised.value))
    assert found is not None
    line = test_the_line_is_that_of_the_operation_not_of_build.__code__.co_firstlineno + 2
    assert int(found.group(1)) == line
