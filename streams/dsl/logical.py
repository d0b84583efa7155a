"""Steps: the operations of the user, in the order of the calls, before they become a Topology.

A step changes only if later calls require it (old values are sent, or a table gets a store).
`dsl/optimise.py` rewrites steps, `dsl/compile.py` turns them into nodes.

A Graph holds the steps of one builder. A Stream or Table of the user has a StreamNode or TableNode:
the step that its records come from, and their serdes.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from broker.serde import Serde
from streams.dsl.names import FILTER, REPARTITION_SUFFIX, SINK, SOURCE, Names, is_generated
from streams.operators.views import StoreView, TableView
from streams.processor import Operator
from streams.state.store import StoreSpec
from streams.stream_time import TimestampExtractor
from streams.topology import Partitioner, TopicChooser
from streams.where import user_line

S = TypeVar("S", bound="Step")


@dataclass(eq=False, slots=True, kw_only=True)
class Step:
    """One operation; `name` is the name of its main node, `where` the line of the user's call."""

    name: str
    parents: tuple["Step", ...] = ()
    where: str = ""


@dataclass(eq=False, slots=True, kw_only=True)
class SourceStep(Step):
    """Read topics as a stream. Sources of the same topics are merged when the topology is built."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class ProcessStep(Step):
    """One processor node. The operator and its stores are created when the topology is built.

    `new_stores` are added with this node and connected to it; `stores` are names of stores that
    other steps add, which are connected, too.
    """

    make: Callable[[], Operator]
    new_stores: Callable[[], Sequence[StoreSpec]] = tuple
    stores: Callable[[], Sequence[str]] = tuple
    changes_key: bool = False  # records must be repartitioned before they are grouped or joined
    keeps_values: bool = True  # False: the value changes, so a repartition may not move above it
    merges: bool = False  # `merge()`: a repartition of both sides may move below it, not above
    accepts_null_keys: bool = False  # a left or outer join: repartitions above it accept null keys


@dataclass(eq=False, slots=True, kw_only=True)
class TableSourceStep(Step):
    """Read a topic as a table: a source node, and a processor (`name`) for its store."""

    source_name: str
    topic: str
    table: "TableState"
    make: Callable[[], Operator]
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class GlobalTableStep(Step):
    """Keep a whole topic in a store of every instance."""

    source_name: str
    topic: str
    store: StoreSpec
    make: Callable[[], Operator]
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class RepartitionStep(Step):
    """Write to an internal topic and read it again: null-key filter, sink and source (`name`).

    The filter drops nothing if a join that accepts null keys follows.
    """

    topic: str  # ends with "-repartition"
    sink_name: str
    filter_name: str  # empty: there is no filter
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitions: int | None = None
    partitioner: Partitioner | None = None
    explicit: bool = False  # created by `repartition()`: never merged with others


@dataclass(eq=False, slots=True, kw_only=True)
class SinkStep(Step):
    """Write to a topic."""

    topic: str | TopicChooser
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitioner: Partitioner | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class StateStoreStep(Step):
    """A store that processors connect to by its name."""

    store: StoreSpec


@dataclass(eq=False, slots=True, kw_only=True)
class CopartitionStep(Step):
    """The sources above the parents must have equal partition counts. Has no node of its own."""


@dataclass(eq=False, slots=True)
class TableState:
    """The properties of a table while the DSL is used; operators read them when created."""

    parents: tuple["TableState", ...] = ()
    store: StoreSpec | None = None  # None: it has no store (yet)
    sends_old: bool = False
    always_stored: bool = False  # aggregates: their operator has the store anyway
    versioned: bool = False
    forces_parents: bool = False  # joins of tables: the tables above get stores in any case
    make_view: Callable[[], TableView] | None = None  # for tables without a store
    need_store: Callable[[], None] | None = None  # source tables: get a store

    def need_old_values(self, *, force: bool = True) -> bool:
        """Send the old value with every change, from the table's store or from the tables above.

        Without `force` no table gets a store for this; returns whether old values are sent.
        """
        if self.sends_old:
            return True
        if self.store is None and not self.always_stored:
            if self.need_store is not None:
                if not force:
                    return False
                self.need_store()
            else:
                sent = [
                    parent.need_old_values(force=force or self.forces_parents)
                    for parent in self.parents
                ]
                if not all(sent):
                    return False
        self.sends_old = True
        return True

    def view(self) -> TableView:
        """The view for lookups in the table; a source table gets a store."""
        if self.store is None and self.need_store is not None:
            self.need_store()
        if self.store is not None:
            return StoreView(self.store.name, versioned=self.versioned)
        assert self.make_view is not None, "a table has a store or a view"
        return self.make_view()


@dataclass(eq=False, slots=True, kw_only=True)
class SelfJoinCandidate:
    """A join of two streams that may be the same stream.

    If both windows have the same parent and the optimisation is on, the steps in `dropped` are
    removed and `joined` replaces `merge`, below the left window.
    """

    left: Step  # keeps the window of one side
    right: Step
    dropped: tuple[Step, ...]
    merge: Step
    joined: Step


class Graph:
    """All steps of one builder, in order."""

    def __init__(self) -> None:
        self.names = Names()
        self.steps: list[Step] = []
        self.self_joins: list[SelfJoinCandidate] = []

    def add(self, step: S) -> S:
        """Add a step at the end, unless it has been added before."""
        if step not in self.steps:
            step.where = step.where or user_line()
            self.steps.append(step)
        return step

    def new_repartition(
        self,
        parent: Step,
        base_name: str,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> RepartitionStep:
        """Create a repartition without adding it; uses three generated names."""
        sink, null_filter, source = (self.names.new(prefix) for prefix in (SINK, FILTER, SOURCE))
        step = named_repartition(parent, base_name, key_serde=key_serde, value_serde=value_serde)
        if is_generated(base_name):
            step.sink_name, step.filter_name, step.name = sink, null_filter, source
        return step


def named_repartition(
    parent: Step,
    base_name: str,
    *,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
) -> RepartitionStep:
    """A repartition whose nodes are named after its topic."""
    topic = base_name.removesuffix(REPARTITION_SUFFIX) + REPARTITION_SUFFIX
    return RepartitionStep(
        name=topic + "-source",
        parents=(parent,),
        topic=topic,
        sink_name=topic + "-sink",
        filter_name=topic + "-filter",
        key_serde=key_serde,
        value_serde=value_serde,
    )


@dataclass(eq=False, slots=True, kw_only=True)
class StreamNode:
    """A stream of the user, and the step that its records come from."""

    graph: Graph
    step: Step
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    needs_repartition: bool = False  # keys have changed since the records were partitioned
    repartition: RepartitionStep | None = None  # of an unnamed join; later unnamed joins share it

    @property
    def name(self) -> str:
        """The name of its last node, and the base name of its repartition topic."""
        return self.step.name

    def repartitioned(
        self,
        base_name: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> "StreamNode":
        """The stream, read through a repartition topic if its keys have changed.

        For joins: omitted serdes are those of the stream, and all unnamed joins of one stream share
        one topic.
        """
        if not self.needs_repartition:
            return self
        key_serde = self.key_serde if key_serde is None else key_serde
        value_serde = self.value_serde if value_serde is None else value_serde
        step = self.graph.new_repartition(
            self.step, base_name or self.name, key_serde=key_serde, value_serde=value_serde
        )
        if self.repartition is None or base_name is not None:
            self.repartition = self.graph.add(step)
        return StreamNode(
            graph=self.graph,
            step=self.repartition,
            key_serde=key_serde,
            value_serde=value_serde,
        )


@dataclass(eq=False, slots=True, kw_only=True)
class TableNode:
    """A table of the user, and the step that its changes come from."""

    graph: Graph
    step: Step
    state: TableState
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    queryable_store_name: str | None = None

    @property
    def name(self) -> str:
        """The name of its last node."""
        return self.step.name
