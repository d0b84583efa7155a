"""The stages of a query in Python, before and after Spark's aggregation or join.

    records -> GroupInput -> group, timestamp, a0 .. an -> groupBy -> GroupOutput -> records
    records -> JoinSide -> key, row, timestamp -> join -> JoinOutput -> records

Groups, keys and rows are bytes for Spark, which only compares and returns them. Expressions and
results of aggregates are computed by the native engine's functions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from broker.serde.registry.http_registry import HttpSchemaRegistry
from sql.backends.native.evaluating import group_function, row_function
from sql.backends.native.joining import row_joiner
from sql.backends.native.rows import stored_rows
from sql.backends.spark.arrow_values import ColumnValues
from sql.backends.spark.job import Job
from sql.backends.spark.per_batch_rules import function_name, scan_of, stateful_step
from sql.backends.spark.row_decoding import (
    FAIL_ON_ERROR,
    THROW_ON_INVALID,
    DecoderSpec,
    Record,
    RowDecoder,
)
from sql.backends.spark.row_encoding import EncoderSpec, OutputRows, RowEncoder
from sql.backends.spark.row_steps import steps_between
from sql.backends.spark.writing import binary_list
from sql.datatypes import INT, DataType
from sql.functions.java_arithmetic import wrap_int, zero
from sql.functions.user import registry_with
from sql.plan import Aggregate, AggregateCall, PlanNode, Sink, StreamJoin
from sql.planner import plan_from_json
from sql.rows.row_format import Row
from sql.schema import WINDOW_BOUNDS

# Arrow's arrays and batches are Any in this module: the library has no type hints.
BOUND_NAMES = tuple(each.name for each in WINDOW_BOUNDS)
LEFT, RIGHT = "left", "right"
SIDE = [("key", pa.binary()), ("row", pa.binary()), ("timestamp", pa.int64())]


class Stages:
    """The stages of one query, created once per process."""

    def __init__(self, job: Job) -> None:
        plan = plan_from_json(job.plan, registry_with(job.function_modules))
        assert isinstance(plan, Sink)
        self.sink = plan
        self.step = stateful_step(plan)
        self._job = job
        self._registry = None if job.registry_url is None else HttpSchemaRegistry(job.registry_url)

    def _flag(self, name: str) -> bool:
        return str(self._job.settings.get(name, "false")).lower() == "true"

    def rows_of(self, last: PlanNode) -> Callable[[Any], list[Record]]:
        """A function from batches of a topic's records to the rows of a step."""
        scan = scan_of(last)
        reading = DecoderSpec(
            scan,
            fail_on_error=self._flag(FAIL_ON_ERROR),
            throw_on_invalid_time=self._flag(THROW_ON_INVALID),
        )
        decoder, steps = RowDecoder(reading, self._registry), steps_between(last, scan)
        return lambda batch: steps(decoder.rows(batch))

    def encoder(self) -> RowEncoder:
        """The encoder of the results."""
        sink = self.sink
        writing = EncoderSpec(
            sink.topic,
            self._job.partition_counts[sink.topic],
            sink.shape,
            sink.key_format,
            sink.value_format,
            sink.timestamp,
            throw_on_invalid_time=self._flag(THROW_ON_INVALID),
        )
        return RowEncoder(writing, self._registry)


class GroupInput:
    """The group of each row, and the arguments of its aggregates."""

    def __init__(self, stages: Stages) -> None:
        step = stages.step
        assert isinstance(step, Aggregate)
        self._rows = stages.rows_of(step.input)
        self._group = None if step.by_key else group_function(step.grouping, _ignore)
        arguments = [each for call in step.calls for each in call.arguments]
        self._arguments = row_function(arguments, _ignore)
        self._encode = stored_rows(step.shape.key).serialize
        self._columns: list[ColumnValues | None] = []
        for call in step.calls:
            is_count = function_name(call.function.signature.name) == "COUNT"
            # Constants come last among the types.
            types = call.types[: len(call.arguments)]
            self._columns += [None if is_count else ColumnValues(each) for each in types]
        fields = [
            (f"a{place}", pa.bool_() if each is None else each.type)
            for place, each in enumerate(self._columns)
        ]
        self.schema = pa.schema([("group", pa.binary()), ("timestamp", pa.int64()), *fields])

    def run(self, batch: Any) -> Any:
        """Skips rows without a group."""
        group_of, encode, compute = self._group, self._encode, self._arguments
        found = [
            (key if group_of is None else group_of(row), row, time_ms)
            for key, row, time_ms in self._rows(batch)
            if row is not None
        ]
        grouped = [(group, row, time_ms) for group, row, time_ms in found if group is not None]
        arguments = [compute(row) for _, row, _ in grouped]
        lists = list(zip(*arguments, strict=True)) if arguments else [()] * len(self._columns)
        columns = [
            _array(column, values) for column, values in zip(self._columns, lists, strict=True)
        ]
        groups = pa.array([encode("", group) for group, _, _ in grouped], pa.binary())
        times = pa.array([time_ms for _, _, time_ms in grouped], pa.int64())
        arrays = [groups, times, *columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(column: ColumnValues | None, values: Sequence[object]) -> Any:
    if column is not None:
        return column.array(values)
    # COUNT only needs to know whether the value is null.
    return pa.array([None if each is None else True for each in values], pa.bool_())


class GroupOutput:
    """The records of groups, from Spark's aggregation.

    Columns: group, timestamp, with windows windowstart and windowend, and for each aggregate r0 and
    so on; an average consists of its sum and its count (n0 and so on).
    """

    def __init__(self, stages: Stages) -> None:
        step = stages.step
        assert isinstance(step, Aggregate)
        self._step = step
        self._decode = stored_rows(step.shape.key).deserialize
        self._results = [_result_of(place, call) for place, call in enumerate(step.calls)]
        self._steps = steps_between(stages.sink.input, step)
        self._encoder = stages.encoder()
        names = [each.name for each in step.shape.key]
        # Indexes of the columns after the aggregates in (key, window start, window end).
        self._places = [
            names.index(each.name)
            if each.name in names
            else len(names) + BOUND_NAMES.index(each.name)
            for each in step.shape.row[len(step.calls) :]
        ]

    def run(self, batch: Any) -> Any:
        """The records of a batch of groups."""
        groups = [self._decode("", each) for each in binary_list(batch.column("group"))]
        windows = None
        bounds: list[tuple[int, ...]] = [()] * len(groups)
        if self._step.window is not None:
            found = batch.column("windowstart").to_pylist(), batch.column("windowend").to_pylist()
            windows = list(zip(*found, strict=True))
            bounds = list(windows)
        results = [result(batch) for result in self._results]
        values = list(zip(*results, strict=True)) if results else [()] * len(groups)
        times = batch.column("timestamp").to_pylist()
        records: list[Record] = []
        for group, bound, value, time_ms in zip(groups, bounds, values, times, strict=True):
            known = (*(group or ()), *bound)
            row = (*value, *(known[place] for place in self._places))
            records.append((group, row, time_ms))
        done = self._steps(records)
        keys, rows, ends = _columns(done)
        return self._encoder.encode_rows(OutputRows(keys, rows, ends, windows))


def _result_of(place: int, call: AggregateCall) -> Callable[[Any], list[object]]:
    """The values of an aggregate's state, from Spark's result."""
    column, name = f"r{place}", function_name(call.function.signature.name)
    if name == "COUNT":
        return lambda batch: list(batch.column(column).to_pylist())
    type_ = call.types[0]
    if name == "SUM":
        finish = _sum_of(type_)
        return lambda batch: [finish(each) for each in batch.column(column).to_pylist()]
    if name == "AVG":
        finish, count = _sum_of(type_), f"n{place}"
        return lambda batch: [
            float(finish(total)) / number if number else 0.0
            for total, number in zip(
                batch.column(column).to_pylist(), batch.column(count).to_pylist(), strict=True
            )
        ]
    values = ColumnValues(type_)
    return lambda batch: values.values(batch.column(column))


# Any: sums of one numeric type.
def _sum_of(type_: DataType) -> Callable[[Any], Any]:
    nothing = zero(type_)
    if type_ is INT:
        return lambda total: nothing if total is None else wrap_int(total)
    return lambda total: nothing if total is None else total


class JoinSide:
    """The rows of one side, by their key; see SIDE."""

    def __init__(self, stages: Stages, side: str) -> None:
        step = stages.step
        assert isinstance(step, StreamJoin)
        input_step = step.left if side == LEFT else step.right
        self._rows = stages.rows_of(input_step)
        self._key = stored_rows(step.shape.key).serialize
        self._row = stored_rows(input_step.shape.row).serialize
        self.schema = pa.schema(SIDE)

    def run(self, batch: Any) -> Any:
        """Rows as bytes; a row without a key matches no other."""
        found = [each for each in self._rows(batch) if each[1] is not None]
        keys, rows, times = _columns(found)
        arrays = [
            pa.array([None if each is None else self._key("", each) for each in keys], pa.binary()),
            pa.array([self._row("", each) for each in rows], pa.binary()),
            pa.array(times, pa.int64()),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class JoinOutput:
    """The records of joined rows; columns are those of SIDE with the prefixes left_ and right_."""

    def __init__(self, stages: Stages) -> None:
        step = stages.step
        assert isinstance(step, StreamJoin)
        self._join = row_joiner(step)
        self._key = stored_rows(step.shape.key).deserialize
        self._left = stored_rows(step.left.shape.row).deserialize
        self._right = stored_rows(step.right.shape.row).deserialize
        self._steps = steps_between(stages.sink.input, step)
        self._encoder = stages.encoder()

    def run(self, batch: Any) -> Any:
        """The records of a batch of pairs."""
        columns = [
            batch.column(f"{side}_{name}").to_pylist() for name, _ in SIDE for side in (LEFT, RIGHT)
        ]
        records: list[Record] = []
        for left_key, right_key, left, right, left_ms, right_ms in zip(*columns, strict=True):
            key = self._key("", right_key if left_key is None else left_key)
            row = self._join(key, self._left("", left), self._right("", right))
            time_ms = max(each for each in (left_ms, right_ms) if each is not None)
            records.append((key, row, time_ms))
        keys, rows, times = _columns(self._steps(records))
        return self._encoder.encode_rows(OutputRows(keys, rows, times))


def _columns(records: list[Record]) -> tuple[list[Row | None], list[Row | None], list[int]]:
    keys, rows, times = zip(*records, strict=True) if records else ((), (), ())
    return list(keys), list(rows), list(times)


@lru_cache(maxsize=64)
def stage_of(job: str, name: str) -> GroupInput | GroupOutput | JoinSide | JoinOutput:
    """A stage of a query, created once per process: "input", "output", "left" or "right"."""
    stages = Stages(Job.of_text(job))
    if isinstance(stages.step, Aggregate):
        return GroupInput(stages) if name == "input" else GroupOutput(stages)
    return JoinOutput(stages) if name == "output" else JoinSide(stages, name)


@dataclass(frozen=True, slots=True)
class GroupStage:
    """A stage as data."""

    job: str  # as text
    name: str

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Process batch by batch."""
        return map(stage_of(self.job, self.name).run, batches)


def _ignore(error: Exception, row: Row | None) -> None:
    """Do nothing: an expression that fails gives null, and a worker's log is not read."""
