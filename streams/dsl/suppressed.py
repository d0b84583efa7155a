"""Options of suppress: until a window closes, or until a time limit."""

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from broker.serde import BytesSerde
from streams.dsl.aggregated import AggregateStep
from streams.dsl.logical import (
    ProcessStep,
    RepartitionStep,
    SourceStep,
    Step,
    TableNode,
    TableState,
)
from streams.dsl.names import check_name
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.operators.suppress import Suppress, SuppressedView
from streams.state.store import NO_LIMIT, StoreKind, StoreSpec
from streams.where import user_line
from streams.windows import (
    Duration,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    Windows,
    milliseconds,
)

K = TypeVar("K")
V = TypeVar("V")

WhenFull = Literal["emit_early", "shut_down"]

SUPPRESS = "KTABLE-SUPPRESS-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """How to suppress results; created by `until_window_closes` and `until_time_limit`."""

    wait_ms: int | None  # None: until the window closes
    max_records: int | None = None
    max_bytes: int | None = None
    when_full: WhenFull = "shut_down"
    name: str | None = None  # of the node; its store is named after it

    def __post_init__(self) -> None:
        if self.when_full not in ("emit_early", "shut_down"):
            raise TopologyError(
                f'"when_full" is {self.when_full!r}',
                at=user_line(),
                hint='it must be "emit_early" or "shut_down"',
            )
        if self.name is not None:
            check_name(self.name)
        for name in ("max_records", "max_bytes"):
            limit = getattr(self, name)
            if limit is not None and limit < 0:
                raise TopologyError(
                    f'"{name}" is {limit}', at=user_line(), hint="it must not be negative"
                )
        if self.wait_ms is not None and self.wait_ms < 0:
            raise TopologyError(
                f"the time limit is {self.wait_ms} ms",
                at=user_line(),
                hint="it must not be negative",
            )


def until_window_closes(
    max_records: int | None = None,
    max_bytes: int | None = None,
    when_full: Literal["shut_down"] = "shut_down",
    name: str | None = None,
) -> Suppressed:
    """Emit only the final result of each window.

    >>> table.suppress(until_window_closes())
    """
    if when_full != "shut_down":
        raise TopologyError(
            f'"when_full" is {when_full!r}',
            at=user_line(),
            hint='a result that is emitted early is not final; only "shut_down" is possible',
        )
    return Suppressed(
        wait_ms=None, max_records=max_records, max_bytes=max_bytes, when_full=when_full, name=name
    )


def until_time_limit(
    duration: Duration,
    max_records: int | None = None,
    max_bytes: int | None = None,
    when_full: WhenFull = "emit_early",
    name: str | None = None,
) -> Suppressed:
    """Emit at most one change of a key per time limit: the last one.

    >>> table.suppress(until_time_limit(timedelta(minutes=1), max_records=10_000))
    """
    return Suppressed(
        wait_ms=milliseconds(duration, "duration"),
        max_records=max_records,
        max_bytes=max_bytes,
        when_full=when_full,
        name=name,
    )


def suppress_table(table: Table[K, V], suppressed: Suppressed) -> Table[K, V]:
    """The table after a suppress."""
    return Table(_suppressed(table.node, suppressed))


def _suppressed(node: TableNode, suppressed: Suppressed) -> TableNode:
    graph, state = node.graph, node.state
    if not isinstance(suppressed, Suppressed):
        raise TopologyError(
            f"{suppressed!r} is not a suppression",
            at=user_line(),
            hint="use until_window_closes() or until_time_limit(duration)",
        )
    if state.versioned:
        raise TopologyError(
            "a versioned table cannot be suppressed",
            at=user_line(),
            hint="omit versioned_history, or suppress a table derived from this one",
        )
    wait_ms, end_is_inclusive = _wait(node, suppressed)
    # With a name, no number is used here, as in Kafka Streams.
    if suppressed.name is None:
        node_name, store_name = graph.names.new(SUPPRESS), graph.names.new_store(SUPPRESS)
    else:
        node_name, store_name = suppressed.name, f"{suppressed.name}-store"
    operator = Suppress(
        store_name,
        wait_ms,
        node.key_serde,
        node.value_serde,
        until_window_closes=suppressed.wait_ms is None,
        end_is_inclusive=end_is_inclusive,
        records_max=_limit(suppressed.max_records),
        bytes_max=_limit(suppressed.max_bytes),
        shuts_down=suppressed.when_full == "shut_down",
    )
    spec = StoreSpec(
        store_name, StoreKind.KEY_VALUE, key_serde=BytesSerde(), value_serde=BytesSerde()
    )
    step = graph.add(
        ProcessStep(
            name=node_name,
            parents=(node.step,),
            make=lambda: operator,
            new_stores=lambda: (spec,),
        )
    )
    # Old values are the last emitted ones, so they must be known from the beginning.
    state.need_old_values()
    return TableNode(
        graph=graph,
        step=step,
        state=TableState(
            parents=(state,),
            sends_old=True,
            make_view=lambda: SuppressedView(
                state.view(), store_name, node.key_serde, node.value_serde
            ),
        ),
        key_serde=node.key_serde,
        value_serde=node.value_serde,
    )


def _limit(given: int | None) -> int:
    return NO_LIMIT if given is None else given


def _wait(node: TableNode, suppressed: Suppressed) -> tuple[int, bool]:
    """How long to wait after a row's time, and whether that time is inclusive."""
    if suppressed.wait_ms is not None:
        return suppressed.wait_ms, False
    match _windows_above(node.step):
        case TimeWindows(grace_ms=grace_ms):
            return grace_ms, False
        case SlidingWindows(grace_ms=grace_ms):
            return grace_ms, True
        case SessionWindows(gap_ms=gap_ms, grace_ms=grace_ms):
            # At this time the store drops the session, so it cannot grow any more.
            return gap_ms + grace_ms, False
        case _:
            raise TopologyError(
                "until_window_closes() needs a windowed table whose windows close",
                at=user_line(),
                hint="suppress the result of windowed_by(...), or use until_time_limit()",
            )


def _windows_above(step: Step) -> Windows | None:
    """The windows of the nearest aggregates above, if any; those with the longest grace."""
    if isinstance(step, AggregateStep):
        return step.windows
    if isinstance(step, SourceStep | RepartitionStep):
        return None
    found: list[Any] = [w for w in map(_windows_above, step.parents) if w is not None]
    return max(found, key=lambda windows: getattr(windows, "grace_ms", -1), default=None)
