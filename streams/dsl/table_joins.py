"""Joins of tables: by the same key, or by a foreign key, which is extracted from the left value.

Names of nodes, stores and topics, and the order of their numbers, are those of Kafka Streams.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from broker.serde import BytesSerde
from streams.dsl import join_names, names
from streams.dsl.logical import (
    CopartitionStep,
    Graph,
    ProcessStep,
    RepartitionStep,
    Step,
    TableNode,
    TableState,
)
from streams.dsl.stored import AnySerde, Stored, StoreOptions, stored
from streams.dsl.stream import check_function
from streams.dsl.table import Table, source_state
from streams.errors import TopologyError
from streams.operators.foreign_key_join import (
    AnswerSubscriptions,
    ForeignKey,
    ForeignKeySerdes,
    NotifySubscribers,
    ReceiveSubscriptions,
    ResolveResponses,
    SendSubscriptions,
)
from streams.operators.foreign_key_messages import response_partition
from streams.operators.joiner import Joiner, as_joiner
from streams.operators.table_join import JoinedView, TableJoinMerge, TableJoinSide
from streams.operators.tables import TableSource
from streams.operators.views import TableView
from streams.processor import Operator
from streams.state.store import StoreKind, StoreSpec
from streams.topology import Partitioner
from streams.where import user_line

Kind = Literal["inner", "left", "outer"]
# Any, because the types of keys and values are checked at the user's call, not here.
AnyFunction = Callable[..., Any]
AnyTable = Table[Any, Any]

TOPIC_SUFFIX = "-topic"


def join_table(  # noqa: PLR0913 - one argument per option
    table: AnyTable,
    other: AnyTable,
    joiner: AnyFunction,
    *,
    kind: Kind,
    foreign_key: AnyFunction | None = None,
    with_key: bool = False,
    name: str | None = None,
    **options: Unpack[StoreOptions],
) -> AnyTable:
    """Join a table with another one."""
    check_function(joiner, "joiner")
    if not isinstance(other, Table) or other.node.graph is not table.node.graph:
        raise TopologyError(
            f"{other!r} cannot be joined",
            at=user_line(),
            hint="pass a Table of the same StreamsBuilder",
        )
    joined = as_joiner(joiner, with_key=with_key)
    store_options = stored(**options)
    if foreign_key is None:
        return Table(_by_key(table.node, other.node, joined, kind, store_options, name))
    check_function(foreign_key, "foreign_key")
    plan = _ForeignKeyPlan.of(table.node.graph.names, name)
    return Table(
        _by_foreign_key(
            _ForeignKeyJoin(
                table.node, other.node, _of_key_and_value(foreign_key), joined, kind == "left"
            ),
            plan,
            store_options,
        )
    )


# ---- by the same key


@dataclass(frozen=True, slots=True)
class _KeyJoin:
    """The parts of a join, and the views for lookups in both tables."""

    left: TableNode
    right: TableNode
    joiner: Joiner
    left_optional: bool
    right_optional: bool
    left_view: TableView
    right_view: TableView

    def view(self) -> TableView:
        """The view of a result without a store."""
        return JoinedView(
            self.left_view, self.right_view, self.joiner, self.left_optional, self.right_optional
        )

    def add_left(self, name: str, result: TableState) -> ProcessStep:
        """Add the node that joins changes of the left table."""
        return self.left.graph.add(
            ProcessStep(
                name=name,
                parents=(self.left.step,),
                make=lambda: TableJoinSide(
                    left=True,
                    other=self.right_view,
                    joiner=self.joiner,
                    own_optional=self.left_optional,
                    other_optional=self.right_optional,
                    send_old=_joins_old_values(result),
                    latest_only=self.left.state.versioned,
                ),
                stores=lambda: self.right_view.stores,
            )
        )

    def add_right(self, name: str, result: TableState) -> ProcessStep:
        """Add the node that joins changes of the right table."""
        return self.left.graph.add(
            ProcessStep(
                name=name,
                parents=(self.right.step,),
                make=lambda: TableJoinSide(
                    left=False,
                    other=self.left_view,
                    joiner=self.joiner,
                    own_optional=self.right_optional,
                    other_optional=self.left_optional,
                    send_old=_joins_old_values(result),
                    latest_only=self.right.state.versioned,
                ),
                stores=lambda: self.left_view.stores,
            )
        )


def _joins_old_values(result: TableState) -> bool:
    # A result with a store has its old values there.
    return result.sends_old and result.store is None


def _by_key(
    left: TableNode,
    right: TableNode,
    joiner: Joiner,
    kind: Kind,
    store_options: Stored,
    name: str | None,
) -> TableNode:
    graph = left.graph
    store_name = store_options.name
    if store_options.given and store_name is None:
        store_name = graph.names.new_store(join_names.TABLE_MERGE)
    merge_name = graph.names.node(name, join_names.TABLE_MERGE)
    graph.add(CopartitionStep(name="", parents=(left.step, right.step)))
    left_optional, right_optional = kind == "outer", kind != "inner"
    if right_optional:
        left.state.need_old_values()
    if left_optional:
        right.state.need_old_values()
    views = left.state.view(), right.state.view()
    join = _KeyJoin(left, right, joiner, left_optional, right_optional, *views)
    store_options = store_options.with_default_serdes(left.key_serde, None)
    state = TableState(
        parents=(left.state, right.state),
        store=None if store_name is None else store_options.table_spec(store_name),
        versioned=store_name is not None and store_options.versioned,
        forces_parents=True,
        make_view=join.view,
    )
    this_name = graph.names.node(name, join_names.TABLE_JOIN_THIS, suffix="-join-this")
    other_name = graph.names.node(name, join_names.TABLE_JOIN_OTHER, suffix="-join-other")
    merge = graph.add(
        ProcessStep(
            name=merge_name,
            parents=(join.add_left(this_name, state), join.add_right(other_name, state)),
            make=lambda: TableJoinMerge(state.store, state.sends_old),
            new_stores=lambda: () if state.store is None else (state.store,),
        )
    )
    return _table(graph, merge, state, store_options)


def _table(graph: Graph, step: Step, state: TableState, store_options: Stored) -> TableNode:
    return TableNode(
        graph=graph,
        step=step,
        state=state,
        key_serde=store_options.key_serde,
        value_serde=store_options.value_serde,
        queryable_store_name=store_options.name,
    )


# ---- by a foreign key


@dataclass(frozen=True, slots=True)
class _ForeignKeyJoin:
    """The parts of a foreign-key join."""

    left: TableNode
    right: TableNode
    foreign_key: ForeignKey
    joiner: Joiner
    left_join: bool

    @property
    def serdes(self) -> ForeignKeySerdes:
        """Serdes of both tables."""
        left, right = self.left, self.right
        return ForeignKeySerdes(
            left.key_serde, left.value_serde, right.key_serde, right.value_serde
        )


@dataclass(frozen=True, slots=True)
class _ForeignKeyPlan:
    """Names of nodes, topics and the store, in the order of their numbers."""

    registration_topic: str
    send: str
    registration_sink: str
    registration_source: str
    store: str
    receive: str
    answer: str
    notify: str
    response_topic: str
    response_sink: str
    response_source: str
    resolve: str
    result: str

    @classmethod
    def of(cls, counter: names.Names, name: str | None) -> "_ForeignKeyPlan":
        """The names of the next foreign-key join."""

        def node(suffix: str, prefix: str) -> str:
            return counter.node(name, prefix, suffix=suffix)

        return cls(
            node("-subscription-registration", join_names.FK_REGISTRATION) + TOPIC_SUFFIX,
            node("-subscription-registration-processor", join_names.FK_REGISTRATION),
            node("-subscription-registration-sink", join_names.TABLE_SINK),
            node("-subscription-registration-source", names.TABLE_SOURCE),
            node("-subscription-store", join_names.FK_STORE),
            node("-subscription-receive", join_names.FK_PROCESSOR),
            node("-subscription-join-foreign", join_names.FK_PROCESSOR),
            node("-foreign-join-subscription", join_names.FK_PROCESSOR),
            node("-subscription-response", join_names.FK_RESPONSE) + TOPIC_SUFFIX,
            node("-subscription-response-sink", join_names.TABLE_SINK),
            node("-subscription-response-source", names.TABLE_SOURCE),
            node("-subscription-response-resolver", join_names.FK_RESOLVER),
            node("-result", join_names.FK_OUTPUT),
        )


def _by_foreign_key(
    join: _ForeignKeyJoin, plan: _ForeignKeyPlan, store_options: Stored
) -> TableNode:
    left, right, serdes, topic = join.left, join.right, join.serdes, plan.registration_topic
    graph = left.graph
    right.state.need_old_values()
    left.state.need_old_values()
    left_view = left.state.view()
    send = _add(
        graph,
        plan.send,
        left.step,
        lambda: SendSubscriptions(
            join.foreign_key, serdes, topic, join.left_join, left.state.versioned
        ),
    )
    registration = graph.add(
        _internal_topic(
            (plan.registration_topic, plan.registration_sink, plan.registration_source),
            (send,),
            right.key_serde,
            None,
        )
    )
    # Subscriptions must reach the partition of the right row, responses that of the left row.
    graph.add(CopartitionStep(name="", parents=(right.step, registration)))
    responses = graph.add(
        _internal_topic(
            (plan.response_topic, plan.response_sink, plan.response_source),
            _add_right_side(graph, join, plan, registration),
            left.key_serde,
            _to_left_partition,
        )
    )
    graph.add(CopartitionStep(name="", parents=(left.step, responses)))
    resolve = _add(
        graph,
        plan.resolve,
        responses,
        lambda: ResolveResponses(
            left_view, serdes, topic, join.joiner, join.foreign_key, join.left_join
        ),
        lambda: left_view.stores,
    )
    return _foreign_key_result(graph, resolve, plan.result, store_options, left.key_serde)


def _add_right_side(
    graph: Graph, join: _ForeignKeyJoin, plan: _ForeignKeyPlan, registration: Step
) -> tuple[Step, Step]:
    """Add the nodes of the right table; returns the two that send responses."""
    right, serdes, topic = join.right, join.serdes, plan.registration_topic
    right_view = right.state.view()
    subscriptions = StoreSpec(
        plan.store,
        StoreKind.TIMESTAMPED_KEY_VALUE,
        key_serde=BytesSerde(),
        value_serde=BytesSerde(),
    )
    receive = graph.add(
        ProcessStep(
            name=plan.receive,
            parents=(registration,),
            make=lambda: ReceiveSubscriptions(plan.store, serdes, topic),
            new_stores=lambda: (subscriptions,),
        )
    )
    answer = _add(
        graph,
        plan.answer,
        receive,
        lambda: AnswerSubscriptions(right_view, serdes, topic),
        lambda: right_view.stores,
    )
    notify = _add(
        graph,
        plan.notify,
        right.step,
        lambda: NotifySubscribers(plan.store, serdes, topic, right.state.versioned),
        lambda: (plan.store,),
    )
    return answer, notify


def _foreign_key_result(
    graph: Graph, resolve: Step, name: str, store_options: Stored, key_serde: AnySerde | None
) -> TableNode:
    store_name = store_options.name or graph.names.new_store(join_names.FK_OUTPUT)
    store_options = store_options.with_default_serdes(key_serde, None)
    state = source_state(store_options, store_name)
    step = graph.add(
        ProcessStep(
            name=name,
            parents=(resolve,),
            make=lambda: TableSource(state.store, state.sends_old),
            new_stores=lambda: () if state.store is None else (state.store,),
        )
    )
    return _table(graph, step, state, store_options)


def _add(
    graph: Graph,
    name: str,
    parent: Step,
    make: Callable[[], Operator],
    stores: Callable[[], tuple[str, ...]] = tuple,
) -> ProcessStep:
    return graph.add(
        ProcessStep(name=name, parents=(parent,), make=make, stores=stores, changes_key=True)
    )


def _internal_topic(
    topic_sink_source: tuple[str, str, str],
    parents: tuple[Step, ...],
    key_serde: AnySerde | None,
    partitioner: Partitioner | None,
) -> RepartitionStep:
    topic, sink, source = topic_sink_source
    return RepartitionStep(
        name=source,
        parents=parents,
        topic=topic,
        sink_name=sink,
        filter_name="",  # records with a null foreign key must not be dropped
        key_serde=key_serde,
        value_serde=BytesSerde(),
        partitioner=partitioner,
        explicit=True,
    )


def _to_left_partition(topic: str, key: object, value: object, count: int) -> int:
    assert isinstance(value, bytes)
    return response_partition(value)


def _of_key_and_value(function: AnyFunction) -> ForeignKey:
    """The user's foreign_key(value), or foreign_key(key, value), as a function of both."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return function
    except ValueError:  # a function that is not written in Python has no signature
        pass
    return lambda key, value: function(value)
