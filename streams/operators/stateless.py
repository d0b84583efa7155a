"""Stateless operations: filter, map, branch, peek and others."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from streams.operators.pairs import checked_pair, no_pairs
from streams.processor import NodeContext, Process, ProcessRows, Rows
from streams.record import Headers

Predicate = Callable[[object, object], object]

EACH = "flat_map, for each result"


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Forwards all records: merges streams, or starts a branch."""

    def open(self, context: NodeContext) -> Process:
        return context.forward


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps records for which the predicate is true (`negate`: false)."""

    predicate: Predicate
    negate: bool = False

    def open(self, context: NodeContext) -> Process:
        predicate, forward = self.predicate, context.forward

        def keep(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if predicate(key, value):
                forward(key, value, timestamp_ms, headers)

        def drop(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if not predicate(key, value):
                forward(key, value, timestamp_ms, headers)

        return drop if self.negate else keep

    def open_rows(self, context: NodeContext) -> ProcessRows:
        predicate = self.predicate

        def keep(rows: Rows) -> Rows:
            for key, value, timestamp_ms, headers in rows:
                if predicate(key, value):
                    yield key, value, timestamp_ms, headers

        def drop(rows: Rows) -> Rows:
            for key, value, timestamp_ms, headers in rows:
                if not predicate(key, value):
                    yield key, value, timestamp_ms, headers

        return drop if self.negate else keep


@dataclass(frozen=True, slots=True)
class DropNullKeys:
    """Drops records without a key before a repartition."""

    def open(self, context: NodeContext) -> Process:
        forward = context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if key is not None:
                forward(key, value, timestamp_ms, headers)

        return process

    def open_rows(self, context: NodeContext) -> ProcessRows:

        def process_rows(rows: Rows) -> Rows:
            for key, value, timestamp_ms, headers in rows:
                if key is not None:
                    yield key, value, timestamp_ms, headers

        return process_rows


@dataclass(frozen=True, slots=True)
class Map:
    """Replaces key and value."""

    mapper: Callable[[object, object], tuple[object, object]]

    def open(self, context: NodeContext) -> Process:
        mapper, forward = self.mapper, context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            pair = mapper(key, value)
            if type(pair) is not tuple:
                pair = checked_pair(pair, mapper, "map")
            try:
                new_key, new_value = pair
            except ValueError:
                new_key, new_value = checked_pair(pair, mapper, "map")
            forward(new_key, new_value, timestamp_ms, headers)

        return process

    def open_rows(self, context: NodeContext) -> ProcessRows:
        mapper = self.mapper

        def process_rows(rows: Rows) -> Rows:
            for key, value, timestamp_ms, headers in rows:
                pair = mapper(key, value)
                if type(pair) is not tuple:
                    pair = checked_pair(pair, mapper, "map")
                try:
                    new_key, new_value = pair
                except ValueError:
                    new_key, new_value = checked_pair(pair, mapper, "map")
                yield new_key, new_value, timestamp_ms, headers

        return process_rows


@dataclass(frozen=True, slots=True)
class MapValues:
    """Replaces the value."""

    mapper: Callable[..., object]
    with_key: bool = False

    def open(self, context: NodeContext) -> Process:
        mapper, forward = self.mapper, context.forward

        def of_value(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, mapper(value), timestamp_ms, headers)

        def of_both(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, mapper(key, value), timestamp_ms, headers)

        return of_both if self.with_key else of_value

    def open_rows(self, context: NodeContext) -> ProcessRows:
        mapper = self.mapper

        def of_value(rows: Rows) -> Rows:
            for key, value, timestamp_ms, headers in rows:
                yield key, mapper(value), timestamp_ms, headers

        def of_both(rows: Rows) -> Rows:
            for key, value, timestamp_ms, headers in rows:
                yield key, mapper(key, value), timestamp_ms, headers

        return of_both if self.with_key else of_value


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Replaces a record with zero or more records."""

    mapper: Callable[[object, object], Iterable[tuple[object, object]]]

    def open(self, context: NodeContext) -> Process:
        mapper, forward = self.mapper, context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            pairs = mapper(key, value)
            if pairs is None:
                raise no_pairs(mapper)
            for pair in pairs:
                if type(pair) is not tuple:
                    pair = checked_pair(pair, mapper, EACH)
                try:
                    new_key, new_value = pair
                except ValueError:
                    new_key, new_value = checked_pair(pair, mapper, EACH)
                forward(new_key, new_value, timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class FlatMapValues:
    """Replaces a value with zero or more values."""

    mapper: Callable[..., Iterable[object]]
    with_key: bool = False

    def open(self, context: NodeContext) -> Process:
        mapper, forward = self.mapper, context.forward

        def of_value(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            for new_value in mapper(value):
                forward(key, new_value, timestamp_ms, headers)

        def of_both(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            for new_value in mapper(key, value):
                forward(key, new_value, timestamp_ms, headers)

        return of_both if self.with_key else of_value


@dataclass(frozen=True, slots=True)
class SelectKey:
    """Replaces the key."""

    selector: Callable[[object, object], object]

    def open(self, context: NodeContext) -> Process:
        selector, forward = self.selector, context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(selector(key, value), value, timestamp_ms, headers)

        return process

    def open_rows(self, context: NodeContext) -> ProcessRows:
        selector = self.selector

        def process_rows(rows: Rows) -> Rows:
            for key, value, timestamp_ms, headers in rows:
                yield selector(key, value), value, timestamp_ms, headers

        return process_rows


@dataclass(frozen=True, slots=True)
class Peek:
    """Calls an action with each record, and forwards it."""

    action: Callable[[object, object], object]

    def open(self, context: NodeContext) -> Process:
        action, forward = self.action, context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            action(key, value)
            forward(key, value, timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class ForEach:
    """Calls an action with each record; ends the stream."""

    action: Callable[[object, object], object]

    def open(self, context: NodeContext) -> Process:
        action = self.action

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            action(key, value)

        return process


@dataclass(frozen=True, slots=True)
class Print:
    """Writes each record as a line; ends the stream."""

    label: str
    file: TextIO | None = None  # None: sys.stdout at the time of the record
    mapper: Callable[[object, object], object] | None = None

    def open(self, context: NodeContext) -> Process:
        label, file, mapper = self.label, self.file, self.mapper

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            text = f"{key}, {value}" if mapper is None else mapper(key, value)
            (sys.stdout if file is None else file).write(f"[{label}]: {text}\n")

        return process


@dataclass(frozen=True, slots=True)
class Branch:
    """Forwards a record to the first branch whose predicate is true.

    If there is one more child than predicates, it gets all other records.
    """

    predicates: Sequence[Predicate]
    children: Sequence[str]

    def open(self, context: NodeContext) -> Process:
        predicates = tuple(self.predicates)
        forwards = [context.forward_to(child) for child in self.children]
        branches = tuple(zip(predicates, forwards, strict=False))
        otherwise = forwards[len(predicates)] if len(forwards) > len(predicates) else None

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            for predicate, forward in branches:
                if predicate(key, value):
                    forward(key, value, timestamp_ms, headers)
                    return
            if otherwise is not None:
                otherwise(key, value, timestamp_ms, headers)

        return process
