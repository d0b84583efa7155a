"""Aggregates of a grouped table: old values are subtracted from their group, new ones added.

    table -> TableSelect -> repartition topic (Change pairs) -> TableAggregate | TableReduce

If the old and the new value of a row belong to the same group, they are sent as one Change, so that
no result without the row is emitted. Otherwise the old group and the new one are updated one after
the other, possibly in different partitions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from streams.operators.aggregate import (
    Adder,
    Initializer,
    Reducer,
    no_initial_value,
    open_table,
)
from streams.operators.emitting import open_emit
from streams.operators.pairs import checked_pair
from streams.processor import NodeContext, Process
from streams.record import Change, Headers

# From key and value of a row to group key and value; None: the row is in no group.
Grouping = Callable[[object, object], tuple[object, object] | None]

# Releases that cannot read records with both values in repartition topics (upgrade.from).
_ONE_VALUE_RELEASES = ("0.", "1.", "2.", "3.0", "3.1", "3.2", "3.3", "3.4")


@dataclass(frozen=True, slots=True)
class TableSelect:
    """Sends the changes of a table to their groups; a null group key or value is in no group."""

    select: Grouping

    def open(self, context: NodeContext) -> Process:
        """For each change: forward the old value, then the new one; both at once for one group."""
        select, forward = self.select, context.forward
        release = context.setting("upgrade.from")
        together = not (isinstance(release, str) and release.startswith(_ONE_VALUE_RELEASES))

        def group(key: object, value: object) -> tuple[object, object] | None:
            if value is None:
                return None
            chosen = select(key, value)
            if chosen is None:
                return None
            if type(chosen) is not tuple or len(chosen) != 2:
                chosen = checked_pair(chosen, select, "group_by of a table")
            return None if chosen[0] is None or chosen[1] is None else chosen

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, old, is_latest = cast("Change", value)
            if not is_latest:  # a late version of a versioned table changes nothing now
                return
            left, entered = group(key, old), group(key, new)
            if together and left is not None and entered is not None and left[0] == entered[0]:
                forward(entered[0], (entered[1], left[1], True), timestamp_ms, headers)
                return
            if left is not None:
                forward(left[0], (None, left[1], True), timestamp_ms, headers)
            if entered is not None:
                forward(entered[0], (entered[1], None, True), timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class TableAggregate:
    """Aggregates the rows of each group."""

    store: str
    initializer: Initializer
    adder: Adder
    subtractor: Adder
    caching: bool = False
    send_old: bool = False
    versioned: bool = False

    def open(self, context: NodeContext) -> Process:
        """For each change: subtract the old value (if there is an aggregate), add the new one."""
        get, put = open_table(context, self.store, versioned=self.versioned)
        send_old = self.send_old
        initializer, adder, subtractor = self.initializer, self.adder, self.subtractor
        emit = open_emit(context, self.store, caching=self.caching, send_old=send_old)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            entered, left, _ = cast("Change", value)
            found = get(key)
            old, newest_ms = (None, timestamp_ms) if found is None else found
            newest_ms = max(newest_ms, timestamp_ms)
            aggregate = old
            if left is not None and aggregate is not None:
                aggregate = subtractor(key, left, aggregate)
            if entered is not None:
                if aggregate is None:
                    aggregate = initializer()
                aggregate = adder(key, entered, aggregate)
            if send_old and found is not None and aggregate is old:
                old = cast("tuple[object, int]", get(key))[
                    0
                ]  # the aggregate may have been changed in place
            size = put(key, aggregate, newest_ms)
            emit(key, aggregate, old, newest_ms, headers, size)

        return process


@dataclass(frozen=True, slots=True)
class TableReduce:
    """Combines the rows of each group into one value of their type."""

    store: str
    adder: Reducer
    subtractor: Reducer
    caching: bool = False
    send_old: bool = False
    versioned: bool = False

    def open(self, context: NodeContext) -> Process:
        """As TableAggregate, but the first value of a group is the initial aggregate."""
        adder, subtractor = self.adder, self.subtractor

        def add(key: object, value: object, aggregate: object) -> object:
            return value if aggregate is None else adder(aggregate, value)

        def subtract(key: object, value: object, aggregate: object) -> object:
            return subtractor(aggregate, value)

        return TableAggregate(
            self.store,
            no_initial_value,
            add,
            subtract,
            self.caching,
            self.send_old,
            self.versioned,
        ).open(context)
