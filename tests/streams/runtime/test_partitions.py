"""How many partitions and tasks a topology has."""

import re

import pytest

from streams.errors import TopologyError
from streams.runtime.partitions import TaskId, lay_out
from streams.topology import RepartitionTopic, SinkNode, SourceNode, SubTopology, Topology
from tests.streams.runtime.apps import count_topology, repartitioned_count_topology


def chain(
    *, copartitions: tuple[frozenset[str], ...] = (), explicit: int | None = None
) -> Topology:
    """in -> first repartition topic -> second one, which is joined with "other"."""
    subs = (
        SubTopology(0, (SourceNode("s0", ("in",)), SinkNode("k0", "first", ("s0",))), ()),
        SubTopology(1, (SourceNode("s1", ("first",)), SinkNode("k1", "second", ("s1",))), ()),
        SubTopology(2, (SourceNode("s2", ("second",)), SourceNode("s3", ("other",))), ()),
    )
    repartitions = {
        "first": RepartitionTopic("first", explicit),
        "second": RepartitionTopic("second"),
    }
    return Topology(subs, {}, repartition_topics=repartitions, copartitions=copartitions)


def test_a_sub_topology_has_a_task_for_each_partition_of_its_largest_source() -> None:
    layout = lay_out(count_topology(), "app", {"in": 3, "unrelated": 9})
    assert layout.tasks() == [TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)]
    assert layout.changelog_topics == {"app-counts-changelog": 3}


def test_a_repartition_topic_is_as_wide_as_the_sources_above_it() -> None:
    layout = lay_out(repartitioned_count_topology(), "app", {"in": 5})
    assert layout.repartition_topics == {"app-again-repartition": 5}
    assert layout.task_count(1) == 5


def test_chained_repartition_topics_follow_each_other() -> None:
    layout = lay_out(chain(), "app", {"in": 4, "other": 2})
    assert layout.repartition_topics == {"app-first": 4, "app-second": 4}


def test_an_explicit_count_goes_down_the_chain() -> None:
    layout = lay_out(chain(explicit=7), "app", {"in": 4, "other": 2})
    assert layout.repartition_topics == {"app-first": 7, "app-second": 7}


def test_a_repartition_topic_matches_the_topic_it_is_joined_with() -> None:
    together = (frozenset({"second", "other"}),)
    layout = lay_out(chain(copartitions=together), "app", {"in": 4, "other": 2})
    assert layout.repartition_topics == {"app-first": 4, "app-second": 2}


def test_joined_topics_with_other_counts_are_named() -> None:
    sources = (SourceNode("a", ("orders",)), SourceNode("b", ("customers",)))
    topology = Topology(
        (SubTopology(0, sources, ()),),
        {},
        copartitions=(frozenset({"orders", "customers"}),),
    )
    with pytest.raises(TopologyError, match='"customers" has 3, "orders" has 2'):
        lay_out(topology, "app", {"orders": 2, "customers": 3})


def test_a_pattern_reads_all_topics_that_match_wholly() -> None:
    source = SourceNode("any", pattern=re.compile("log-.*"))
    topology = Topology((SubTopology(0, (source,), ()),), {})
    layout = lay_out(topology, "app", {"log-a": 2, "log-b": 3, "other-log-c": 9})
    assert layout.source_topics == {0: ("log-a", "log-b")}
    assert [len(layout.inputs(task)) for task in layout.tasks()] == [2, 2, 1]


def test_a_task_id_reads_as_it_is_written() -> None:
    assert TaskId.parse(str(TaskId(1, 12))) == TaskId(1, 12)
    with pytest.raises(ValueError, match="invalid literal"):
        TaskId.parse("global")
