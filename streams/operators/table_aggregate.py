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
    """Sends the changes of a table to their groups; a null key or value belongs to no group."""

    select: Grouping

    def open(self, context: NodeContext) -> Process:
        """For each change: forward the old value, then the new one; both at once for one group."""
        select, forward = self.select, context.forward
        release = context.setting("upgrade.from")
        sends_both = not (isinstance(release, str) and release.startswith(_ONE_VALUE_RELEASES))

        def group(key: object, value: object) -> tuple[object, object] | None:
            if value is None:
                return None
            pair = select(key, value)
            if pair is None:
                return None
            if type(pair) is not tuple or len(pair) != 2:
                pair = checked_pair(pair, select, "group_by of a table")
            return None if pair[0] is None or pair[1] is None else pair

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, old, is_latest = cast("Change", value)
            if not is_latest:  # an out-of-order version does not change the current groups
                return
            before, after = group(key, old), group(key, new)
            if sends_both and before is not None and after is not None and before[0] == after[0]:
                forward(after[0], (after[1], before[1], True), timestamp_ms, headers)
                return
            if before is not None:
                forward(before[0], (None, before[1], True), timestamp_ms, headers)
            if after is not None:
                forward(after[0], (after[1], None, True), timestamp_ms, headers)

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
            added, subtracted, _ = cast("Change", value)
            found = get(key)
            old, newest_ms = (None, timestamp_ms) if found is None else found
            newest_ms = max(newest_ms, timestamp_ms)
            aggregate = old
            if subtracted is not None and aggregate is not None:
                aggregate = subtractor(key, subtracted, aggregate)
            if added is not None:
                if aggregate is None:
                    aggregate = initializer()
                aggregate = adder(key, added, aggregate)
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
        """Like TableAggregate, but the first value of a group is the initial aggregate."""
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
