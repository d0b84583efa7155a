"""Joins of streams: with another stream, with a table, with a global table.

Names of nodes, stores and topics, and the order of their numbers, are those of Kafka Streams. Joins
of tables are in `table_joins`; `join_table` is exported here, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from broker.serde import BytesSerde
from streams.dsl import join_names, names
from streams.dsl.logical import (
    CopartitionStep,
    ProcessStep,
    SelfJoinCandidate,
    StreamNode,
    TableState,
)
from streams.dsl.stored import AnySerde, JoinOptions, refuse_unknown, serde_of
from streams.dsl.stream import Stream, check_function, check_stream
from streams.dsl.table import GlobalTable, Table
from streams.dsl.table_joins import join_table
from streams.errors import TopologyError
from streams.operators import self_join, stateless
from streams.operators.global_join import GlobalJoin
from streams.operators.joiner import Joiner, as_joiner
from streams.operators.outer_join_pending import PendingSpec
from streams.operators.stream_join import StoreForJoin, StreamJoin
from streams.operators.stream_table_join import BufferedStreamTableJoin, StreamTableJoin
from streams.processor import Operator
from streams.state.store import StoreKind, StoreSpec
from streams.where import user_line
from streams.windows import Duration, JoinWindows, milliseconds

__all__ = ["join_stream", "join_table"]

Kind = Literal["inner", "left", "outer"]
# Any, because the types of keys and values are checked at the user's call, not here.
AnyFunction = Callable[..., Any]
AnyStream = Stream[Any, Any]
AnyTable = Table[Any, Any]
AnyGlobalTable = GlobalTable[Any, Any]


def join_stream(  # noqa: PLR0913 - one argument per option
    stream: AnyStream,
    other: AnyStream | AnyTable | AnyGlobalTable,
    joiner: AnyFunction,
    *,
    kind: Kind,
    within: JoinWindows | None = None,
    grace: Duration | None = None,
    key_mapper: AnyFunction | None = None,
    **options: Unpack[JoinOptions],
) -> AnyStream:
    """Join a stream with a stream, table or global table."""
    check_function(joiner, "joiner")
    settings = JoinSettings.of(joiner, options)
    if isinstance(other, Stream):
        _refuse("grace", grace, "set the grace of the join's window: join_within(..., grace=...)")
        _refuse("key_mapper", key_mapper, "two streams are joined by their keys; use select_key")
        if not isinstance(within, JoinWindows):
            raise TopologyError(
                f'"within" of a join of two streams is {within!r}',
                at=user_line(),
                hint="specify how far apart the records can be: within=join_within(...)",
            )
        check_stream(other, stream.node)
        return _with_stream(stream.node, other.node, settings, kind, within)
    _refuse("within", within, "only a join of two streams has a time window")
    _refuse("store_name", settings.store_name, "only a join of two streams has stores to name")
    if isinstance(other, GlobalTable):
        _refuse("grace", grace, "a global table has no history")
        check_function(key_mapper, "key_mapper")
        assert key_mapper is not None
        return _with_global_table(stream.node, other, settings, key_mapper, left=kind == "left")
    _refuse("key_mapper", key_mapper, "only a join with a global table maps keys")
    if not isinstance(other, Table) or other.node.graph is not stream.node.graph:
        raise TopologyError(
            f"{other!r} cannot be joined",
            at=user_line(),
            hint="pass a Stream, Table or GlobalTable of the same StreamsBuilder",
        )
    return _with_table(stream.node, other, settings, grace, left=kind == "left")


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """The options of one join."""

    joiner: Joiner
    key_serde: AnySerde | None
    value_serde: AnySerde | None
    other_serde: AnySerde | None
    name: str | None
    store_name: str | None
    logging: bool
    persistent: bool
    topic_config: Mapping[str, str]

    @classmethod
    def of(cls, joiner: AnyFunction, options: JoinOptions) -> "JoinSettings":
        """Read the options of a join."""
        refuse_unknown(options, JoinOptions.__annotations__)
        name, store_name = options.get("name"), options.get("store_name")
        if store_name is not None:
            names.check_name(store_name, "store")
        return cls(
            as_joiner(joiner, with_key=options.get("with_key", False)),
            serde_of(options.get("key")),
            serde_of(options.get("value")),
            serde_of(options.get("other_value")),
            None if name is None else names.check_name(name),
            store_name,
            options.get("logging", True),
            options.get("persistent", True),
            dict(options.get("topic_config") or {}),
        )

    def apply_to(self, store: StoreSpec) -> StoreSpec:
        """Apply the user's options to a store of the join."""
        return replace(
            store,
            logging=self.logging,
            persistent=self.persistent,
            topic_config=self.topic_config,
        )


def _refuse(name: str, given: object, hint: str) -> None:
    if given is not None:
        raise TopologyError(f'"{name}" is not allowed in this join', at=user_line(), hint=hint)


# ---- stream with stream


@dataclass(frozen=True, slots=True, kw_only=True)
class _StreamJoinPlan:
    """Names and stores of a join of two streams, settings before its steps are created."""

    store_left: str
    store_right: str
    join_left: str
    join_right: str
    merge: str
    left_store: StoreSpec
    right_store: StoreSpec
    pending_store: StoreSpec | None


def _with_stream(
    left: StreamNode, right: StreamNode, settings: JoinSettings, kind: Kind, within: JoinWindows
) -> AnyStream:
    base = settings.name
    left = left.repartitioned(
        None if base is None else f"{base}-left",
        key_serde=settings.key_serde,
        value_serde=settings.value_serde,
    )
    right = right.repartitioned(
        None if base is None else f"{base}-right",
        key_serde=settings.key_serde,
        value_serde=settings.other_serde,
    )
    graph = left.graph
    key_serde = settings.key_serde or left.key_serde or right.key_serde
    left_serde = settings.value_serde or left.value_serde
    right_serde = settings.other_serde or right.value_serde
    plan = _plan(graph.names, settings, kind, within, (key_serde, left_serde, right_serde))
    merge = _add_stream_join(left, right, plan, _sides(plan, settings.joiner, kind, within), kind)
    graph.add(CopartitionStep(name="", parents=(left.step, right.step)))
    if kind == "inner":
        _add_self_join_candidate(left, merge, plan, settings.joiner, within)
    return Stream(StreamNode(graph=graph, step=merge, key_serde=key_serde))


def _plan(
    counter: names.Names,
    settings: JoinSettings,
    kind: Kind,
    within: JoinWindows,
    serdes: tuple[AnySerde | None, AnySerde | None, AnySerde | None],
) -> _StreamJoinPlan:
    name, store_name = settings.name, settings.store_name
    this_outer, other_outer = kind == "outer", kind != "inner"
    store_left = counter.node(name, join_names.WINDOWED, suffix="-this-windowed")
    store_right = counter.node(name, join_names.WINDOWED, suffix="-other-windowed")
    this = counter.new(join_names.OUTER_THIS if this_outer else join_names.JOIN_THIS)
    other = counter.new(join_names.OUTER_OTHER if other_outer else join_names.JOIN_OTHER)
    this_suffix = "-outer-this-join" if this_outer else "-this-join"
    other_suffix = "-outer-other-join" if other_outer else "-other-join"
    key_serde, left_serde, right_serde = serdes
    pending = None
    if kind != "inner" and not within.eager_unmatched:
        shared_suffix = "-outer-shared-join" if this_outer else "-left-shared-join"
        number = this.rpartition("-")[2]
        base = (
            join_names.OUTER_SHARED + number if store_name is None else store_name + shared_suffix
        )
        pending = settings.apply_to(_bytes_store(f"{base}-store"))
    this_base = this if store_name is None else store_name + this_suffix
    other_base = other if store_name is None else store_name + other_suffix
    return _StreamJoinPlan(
        store_left=store_left,
        store_right=store_right,
        join_left=this if name is None else name + this_suffix,
        join_right=other if name is None else name + other_suffix,
        merge=counter.node(name, names.MERGE, suffix="-merge"),
        left_store=settings.apply_to(_window_store(this_base, within, key_serde, left_serde)),
        right_store=settings.apply_to(_window_store(other_base, within, key_serde, right_serde)),
        pending_store=pending,
    )


def _bytes_store(name: str) -> StoreSpec:
    return StoreSpec(name, StoreKind.KEY_VALUE, key_serde=BytesSerde(), value_serde=BytesSerde())


def _window_store(
    base: str, within: JoinWindows, key_serde: AnySerde | None, value_serde: AnySerde | None
) -> StoreSpec:
    return StoreSpec(
        f"{base}-store",
        StoreKind.WINDOW,
        key_serde=key_serde,
        value_serde=value_serde,
        retention_ms=within.size_ms + within.grace_ms,
        window_size_ms=within.size_ms,
        retain_duplicates=True,
    )


def _sides(
    plan: _StreamJoinPlan, joiner: Joiner, kind: Kind, within: JoinWindows
) -> tuple[StreamJoin, StreamJoin]:
    pending = None
    if plan.pending_store is not None:
        pending = PendingSpec(
            plan.pending_store.name,
            within,
            plan.left_store.key_serde,
            plan.left_store.value_serde,
            plan.right_store.value_serde,
        )
    left = StreamJoin(
        left=True,
        other_store=plan.right_store.name,
        windows=within,
        joiner=joiner,
        outer=kind != "inner",
        pending=pending,
    )
    right = StreamJoin(
        left=False,
        other_store=plan.left_store.name,
        windows=within,
        joiner=joiner,
        outer=kind == "outer",
        pending=pending,
    )
    return left, right


def _add_stream_join(
    left: StreamNode,
    right: StreamNode,
    plan: _StreamJoinPlan,
    sides: tuple[StreamJoin, StreamJoin],
    kind: Kind,
) -> ProcessStep:
    graph, outer = left.graph, kind != "inner"
    pending = () if plan.pending_store is None else (plan.pending_store,)
    store_left = graph.add(_store_step(plan.store_left, left, plan.left_store, outer))
    store_right = graph.add(_store_step(plan.store_right, right, plan.right_store, outer))
    join_left = graph.add(
        ProcessStep(
            name=plan.join_left,
            parents=(store_left,),
            make=lambda: sides[0],
            new_stores=lambda: pending,
            stores=lambda: (plan.right_store.name,),
            keeps_values=False,
        )
    )
    join_right = graph.add(
        ProcessStep(
            name=plan.join_right,
            parents=(store_right,),
            make=lambda: sides[1],
            stores=lambda: (plan.left_store.name, *(store.name for store in pending)),
            keeps_values=False,
        )
    )
    return graph.add(
        ProcessStep(name=plan.merge, parents=(join_left, join_right), make=stateless.PassThrough)
    )


def _store_step(
    name: str, node: StreamNode, store: StoreSpec, accepts_null_keys: bool
) -> ProcessStep:
    return ProcessStep(
        name=name,
        parents=(node.step,),
        make=lambda: StoreForJoin(store.name),
        new_stores=lambda: (store,),
        accepts_null_keys=accepts_null_keys,
    )


def _add_self_join_candidate(
    node: StreamNode,
    merge: ProcessStep,
    plan: _StreamJoinPlan,
    joiner: Joiner,
    within: JoinWindows,
) -> None:
    """Prepare the replacement that is used if both sides are the same stream."""
    join_left, join_right = merge.parents
    (store_left,), (store_right,) = join_left.parents, join_right.parents

    store = plan.left_store.name
    joined = ProcessStep(
        name=plan.merge,
        parents=(store_left,),
        make=lambda: self_join.SelfJoin(store, within, joiner),
        stores=lambda: (store,),
        keeps_values=False,
        where=merge.where,
    )
    node.graph.self_joins.append(
        SelfJoinCandidate(
            left=store_left,
            right=store_right,
            dropped=(store_right, join_left, join_right),
            merge=merge,
            joined=joined,
        )
    )


# ---- stream with table


def _with_table(
    stream: StreamNode,
    table: AnyTable,
    settings: JoinSettings,
    grace: Duration | None,
    *,
    left: bool,
) -> AnyStream:
    stream = stream.repartitioned(
        settings.name, key_serde=settings.key_serde, value_serde=settings.value_serde
    )
    graph, state = stream.graph, table.node.state
    grace_ms = None if grace is None else _checked_grace_ms(grace, state)
    graph.add(CopartitionStep(name="", parents=(stream.step, table.node.step)))
    name = graph.names.node(settings.name, join_names.LEFT_JOIN if left else join_names.JOIN)
    view = state.view()
    join = StreamTableJoin(view, settings.joiner, left=left, as_of=state.versioned)
    operator: Operator = join
    buffer: tuple[StoreSpec, ...] = ()
    key_serde = settings.key_serde or stream.key_serde
    if grace_ms is not None:
        spec = settings.apply_to(_bytes_store(f"{name}-Buffer"))
        buffer = (spec,)
        operator = BufferedStreamTableJoin(
            join, grace_ms, spec.name, key_serde, settings.value_serde or stream.value_serde
        )
    step = graph.add(
        ProcessStep(
            name=name,
            # The table is not a parent: its changes do not trigger the join, it is only looked up.
            parents=(stream.step,),
            make=lambda: operator,
            new_stores=lambda: buffer,
            stores=lambda: view.stores,
            keeps_values=False,
            accepts_null_keys=left,
        )
    )
    return Stream(StreamNode(graph=graph, step=step, key_serde=key_serde))


def _checked_grace_ms(grace: Duration, state: TableState) -> int:
    grace_ms = milliseconds(grace, "grace")
    if grace_ms < 0:
        raise TopologyError(
            f'"grace" is {grace_ms} ms', at=user_line(), hint="it must not be negative"
        )
    if not state.versioned:
        raise TopologyError(
            "a join with grace needs a versioned table",
            at=user_line(),
            hint="give the table a history: versioned_history=...",
        )
    history_ms = _history_ms(state)
    if history_ms is not None and grace_ms > history_ms:
        raise TopologyError(
            f"the grace of {grace_ms} ms is longer than the table's history of {history_ms} ms",
            at=user_line(),
            hint="give the table a longer history, or the join a shorter grace",
        )
    return grace_ms


def _history_ms(state: TableState) -> int | None:
    """The history of the table, or the shortest history of the tables that it is derived from."""
    if state.store is not None:
        return state.store.history_ms
    known = [found for parent in state.parents if (found := _history_ms(parent)) is not None]
    return min(known, default=None)


# ---- stream with global table


def _with_global_table(
    stream: StreamNode,
    table: AnyGlobalTable,
    settings: JoinSettings,
    key_mapper: AnyFunction,
    *,
    left: bool,
) -> AnyStream:
    graph = stream.graph
    # Kafka Streams uses this prefix for the inner join, too.
    name = graph.names.node(settings.name, join_names.LEFT_JOIN)
    operator = GlobalJoin(table.view, key_mapper, settings.joiner, left=left)
    step = graph.add(
        ProcessStep(
            name=name,
            parents=(stream.step,),
            make=lambda: operator,
            keeps_values=False,
            accepts_null_keys=left,
        )
    )
    return Stream(
        StreamNode(
            graph=graph,
            step=step,
            key_serde=stream.key_serde,
            needs_repartition=stream.needs_repartition,
        )
    )
