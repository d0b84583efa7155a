"""TopologyBuilder: what it makes, and what it refuses, where the user wrote it."""

import re
from collections.abc import Callable

import pytest

from streams import Processor, Record, StoreKind, StoreSpec, TopologyBuilder
from streams.errors import TopologyError
from streams.operators.stateless import PassThrough
from streams.topology import ProcessorNode, Topology
from tests.streams.topology.topologies import Drop

STORE = StoreSpec("counts", StoreKind.KEY_VALUE)
ONE_FOR_ALL = Drop()


def started() -> TopologyBuilder:
    """A builder with a source and a processor."""
    return TopologyBuilder().add_source("source", "in").add_processor("work", Drop, "source")


def processor(topology: Topology, name: str) -> ProcessorNode:
    """A processor node by its name."""
    for part in topology.sub_topologies:
        for node in part.nodes:
            if isinstance(node, ProcessorNode) and node.name == name:
                return node
    raise AssertionError(name)


Mistake = Callable[[TopologyBuilder], object]

MISTAKES: dict[str, tuple[Mistake, str]] = {
    "a second node of the same name": (
        lambda builder: builder.add_source("work", "other"),
        'node "work" already exists',
    ),
    "a second source of the same topic": (
        lambda builder: builder.add_source("again", "in"),
        'topic "in" is already read by source "source"',
    ),
    "a topic that a pattern matches": (
        lambda builder: builder.add_source("p", re.compile("log-.*")).add_source("q", "log-1"),
        'topic "log-1" is already read by source "p"',
    ),
    "a pattern that matches a topic": (
        lambda builder: builder.add_source("p", re.compile("i.")),
        'topic "in" is already read by source "source"',
    ),
    "a source without topics": (
        lambda builder: builder.add_source("none", []),
        'source "none" has no topic',
    ),
    "an unknown parent": (
        lambda builder: builder.add_sink("sink", "out", "wrok"),
        'node "sink" has parent "wrok", which does not exist',
    ),
    "a node as its own parent": (
        lambda builder: builder.add_processor("self", Drop, "self"),
        'node "self" has parent "self", which does not exist',
    ),
    "no parent": (
        lambda builder: builder.add_processor("orphan", Drop, ()),
        'node "orphan" has no parent',
    ),
    "a sink as parent": (
        lambda builder: builder.add_sink("sink", "out", "work").add_sink("more", "x", "sink"),
        'node "more" has parent "sink", which is a sink',
    ),
    "a sink that writes its own source": (
        lambda builder: builder.add_sink("sink", "in", "source"),
        'sink "sink" writes topic "in", which its parent "source" reads',
    ),
    "a store that is not there": (
        lambda builder: builder.connect_processor_and_state_stores("work", "counts"),
        'processor "work" uses store "counts", which does not exist',
    ),
    "stores for a source": (
        lambda builder: builder.add_state_store(STORE, "source"),
        'there is no processor "source" to connect stores to',
    ),
    "a second store of the same name": (
        lambda builder: builder.add_state_store(STORE).add_state_store(
            StoreSpec("counts", StoreKind.SESSION)
        ),
        'store "counts" already exists',
    ),
    "a global store connected by hand": (
        lambda builder: builder.add_global_store(
            STORE, "g-source", "g", "g-work", PassThrough()
        ).connect_processor_and_state_stores("work", "counts"),
        'store "counts" is a global one',
    ),
    "a global store with one name for both nodes": (
        lambda builder: builder.add_global_store(STORE, "g", "topic", "g", PassThrough()),
        '"g" names both nodes',
    ),
    "a supplier that makes no processor": (
        lambda builder: builder.add_processor("wrong", dict, "source"),
        "the supplier returned {}, which has no process()",
    ),
    "a supplier that gives one processor twice": (
        lambda builder: builder.add_processor("shared", lambda: ONE_FOR_ALL, "source"),
        "the supplier returned the same Processor twice",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_the_line_it_was_made_on(mistake: str) -> None:
    make, what = MISTAKES[mistake]
    with pytest.raises(TopologyError) as raised:
        make(started())
    text = str(raised.value)
    assert what in text
    assert re.search(rf"at: {re.escape(__file__)}:\d+", text)
    assert "hint: " in text


def test_a_topology_without_nodes_is_refused() -> None:
    with pytest.raises(TopologyError, match="no node"):
        TopologyBuilder().build()


def test_parts_that_share_nothing_are_numbered_in_the_order_they_were_added() -> None:
    builder = TopologyBuilder()
    builder.add_source("z", "z-topic").add_source("a", "a-topic")
    builder.add_sink("z-sink", "out", "z").add_sink("a-sink", "out", "a")
    topology = builder.build()
    assert [(part.number, part.source_topics) for part in topology.sub_topologies] == [
        (0, ("z-topic",)),
        (1, ("a-topic",)),
    ]


def test_a_store_in_common_makes_one_part_of_two() -> None:
    builder = TopologyBuilder().add_source("a", "a-topic").add_source("b", "b-topic")
    builder.add_processor("on-a", Drop, "a", stores=[STORE])
    builder.add_processor("on-b", Drop, "b", stores=["counts"])
    topology = builder.build()
    (part,) = topology.sub_topologies
    assert part.source_topics == ("a-topic", "b-topic")
    assert part.stores == ("counts",)
    assert processor(topology, "on-a").stores == ("counts",)
    assert processor(topology, "on-b").stores == ("counts",)


def test_nodes_stand_after_their_parents() -> None:
    topology = started().add_sink("sink", "out", ["source", "work"]).build()
    (part,) = topology.sub_topologies
    assert [node.name for node in part.nodes] == ["source", "work", "sink"]


def test_a_store_has_a_changelog_unless_logging_is_off() -> None:
    builder = started().add_state_store(STORE, "work")
    builder.add_state_store(StoreSpec("quiet", StoreKind.KEY_VALUE, logging=False), "work")
    topology = builder.build()
    assert topology.changelogs == {"counts": "counts-changelog"}
    assert topology.source_changelogs == frozenset()
    assert set(topology.stores) == {"counts", "quiet"}


def test_a_store_that_nobody_uses_is_left_out() -> None:
    topology = started().add_state_store(STORE).build()
    assert topology.stores == {}
    assert topology.changelogs == {}


def test_a_read_only_store_has_its_topic_as_changelog() -> None:
    builder = TopologyBuilder()
    builder.add_read_only_state_store(STORE, "source", "counts-topic", "fill", PassThrough())
    topology = builder.build()
    assert topology.changelogs == {"counts": "counts-topic"}
    assert topology.source_changelogs == {"counts"}


def test_a_global_store_is_no_part_but_takes_a_number() -> None:
    builder = TopologyBuilder()
    builder.add_global_store(STORE, "g-source", "g", "g-work", PassThrough())
    builder.add_source("source", "in")
    topology = builder.build()
    assert topology.global_stores["counts"].number == 0
    assert topology.global_stores["counts"].topic == "g"
    assert [part.number for part in topology.sub_topologies] == [1]
    assert topology.stores == {}


def test_a_processor_with_an_open_method_is_no_operator() -> None:
    class Opens(Processor[str, str, str, str]):
        def open(self) -> None:
            """Of the user's own."""

        def process(self, record: Record[str, str]) -> None:
            """Nothing."""

    topology = TopologyBuilder().add_source("s", "in").add_processor("p", Opens, "s").build()
    assert not isinstance(processor(topology, "p").operator, type)
