"""'spark.updates'='per-batch': a query as Spark's own aggregation or join.

    source -> stage in Python -> groupBy or join of Spark -> stage in Python -> sink

A group is emitted once per micro-batch, with its value after all records of the batch. Final
results, and joined rows, are written to the sink as a stream. Updates are written batch by batch,
since sinks in Python do not support them: each batch is a separate result, written once under its
number.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sql.backends.native.aggregating import session_windows, time_windows
from sql.backends.native.joining import DAY_MS
from sql.backends.spark.group_stages import LEFT, RIGHT, GroupStage, Stages, stage_of
from sql.backends.spark.job import Job
from sql.backends.spark.per_batch_rules import (
    HINT,
    PER_BATCH,
    SETTING,
    function_name,
    scan_of,
    stateful_step,
)
from sql.backends.spark.row_encoding import WRITTEN
from sql.backends.spark.stages import Staged
from sql.errors import SqlError
from sql.functions.user import registry_with
from sql.plan import Aggregate, AggregateCall, Sink, StreamJoin, WindowSpec
from sql.planner import plan_from_json
from sql.syntax.queries import JoinKind, WindowKind

if TYPE_CHECKING:
    from sql.backends.spark.query import SparkPlace

SOURCE = "millstream"
KINDS = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left_outer",
    JoinKind.RIGHT: "right_outer",
    JoinKind.OUTER: "full_outer",
}

# Spark's frames, columns and queries are Any in this module: PySpark has no type hints for them.
Read = Callable[[str, Staged], Any]  # the records of a topic after a stage


def runs_per_batch(job: Job) -> bool:
    """Whether a query must run per batch; SqlError if it must but cannot."""
    if job.settings.get(SETTING) != PER_BATCH:
        return False
    plan = plan_from_json(job.plan, registry_with(job.function_modules))
    assert isinstance(plan, Sink)
    return stateful_step(plan) is not None


def topics_of(job: Job) -> list[str]:
    """The topics that a per-batch query reads."""
    step = Stages(job).step
    assert step is not None, "a query without state does not run per batch"
    inputs = [step.input] if isinstance(step, Aggregate) else [step.left, step.right]
    return sorted({scan_of(each).topic for each in inputs})


@dataclass(frozen=True, slots=True)
class PerBatchQuery:
    """A query to start; `read` returns the records of a topic after a stage."""

    job: Job
    place: "SparkPlace"
    name: str
    read: Read

    def start(self, options: Mapping[str, str], checkpoint: str) -> Any:
        """Start Spark's query; `options` are those of the sink."""
        _check_session(self.place.session)
        step = Stages(self.job).step
        if isinstance(step, Aggregate):
            results = self._aggregated(step)
            is_append = step.final
        else:
            assert isinstance(step, StreamJoin)
            results = self._joined(step)
            is_append = True
        writing = (
            results.writeStream.option("checkpointLocation", checkpoint)
            .queryName(self.name)
            .trigger(**self.place.trigger)
        )
        if is_append:
            sink = writing.format(SOURCE).options(**options).option("sink_id", self.name)
            return sink.outputMode("append").start()
        batches = _Batches({**options, "sink_id": self.name})
        started = writing.foreachBatch(batches.write).outputMode("update").start()
        batches.begin(started.id)
        return started

    # --- steps ----------------------------------------------------------------------------------

    def _aggregated(self, step: Aggregate) -> Any:
        from pyspark.sql import functions

        rows = self._rows(scan_of(step.input).topic, "input")
        results = [functions.max("timestamp").alias("timestamp"), *_results(step)]
        if step.window is None:
            return self._written(rows.groupBy("group").agg(*results))
        window, grace_ms = _window(step.window)
        moments = rows.withColumn("moment", functions.timestamp_millis("timestamp"))
        late = moments.withWatermark("moment", f"{grace_ms} milliseconds")
        if step.window.kind is WindowKind.SESSION:
            bounds = [functions.min("timestamp").alias("windowstart")]
            bounds.append(functions.max("timestamp").alias("windowend"))
            return self._written(late.groupBy("group", window).agg(*results, *bounds))
        groups = late.groupBy("group", window).agg(*results)
        for bound in ("start", "end"):
            groups = groups.withColumn(
                f"window{bound}", functions.unix_millis(functions.col(f"window.{bound}"))
            )
        # No window begins before time 0.
        return self._written(groups.where(functions.col("windowstart") >= 0))

    def _joined(self, step: StreamJoin) -> Any:
        from pyspark.sql import functions

        grace_ms = DAY_MS if step.grace_ms is None else step.grace_ms
        sides = []
        for side, input_step in ((LEFT, step.left), (RIGHT, step.right)):
            rows = self._rows(scan_of(input_step).topic, side)
            rows = rows.select(*(rows[name].alias(f"{side}_{name}") for name in rows.columns))
            moment = functions.timestamp_millis(f"{side}_timestamp")
            rows = rows.withColumn(f"{side}_moment", moment)
            sides.append(rows.withWatermark(f"{side}_moment", f"{grace_ms} milliseconds"))
        condition = functions.expr(
            "left_key = right_key "
            f"and right_moment >= left_moment - interval {step.before_ms} milliseconds "
            f"and right_moment <= left_moment + interval {step.after_ms} milliseconds"
        )
        return self._written(sides[0].join(sides[1], condition, KINDS[step.kind]))

    def _rows(self, topic: str, name: str) -> Any:
        """The input rows of Spark's operator."""
        from pyspark.sql.pandas.types import from_arrow_schema

        stage = GroupStage(self.job.to_text(), name)
        schema = stage_of(stage.job, name).schema  # type: ignore[union-attr] # inputs have one
        return self.read(topic, Staged(stage, from_arrow_schema(schema)))

    def _written(self, results: Any) -> Any:
        """The records of the results of Spark's operator."""
        from pyspark.sql.pandas.types import from_arrow_schema

        output = Staged(GroupStage(self.job.to_text(), "output"), from_arrow_schema(WRITTEN))
        return output.applied(
            results.drop("window", "session_window", "left_moment", "right_moment")
        )


class _Batches:
    """Writes each micro-batch as a separate result, under its number."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options` are those of the sink."""
        self._options = options
        self._query_id = ""
        self._begun = threading.Event()

    def begin(self, query_id: str) -> None:
        """Set the query's id, which is that of the checkpoint."""
        self._query_id = str(query_id)
        self._begun.set()

    def write(self, batch: Any, batch_id: int) -> None:
        """Write a batch; a repeated batch is detected and skipped."""
        # Spark may call this before `start` has returned the query's id.
        self._begun.wait()
        numbered = {"query_id": self._query_id, "batch_id": str(batch_id)}
        batch.write.format(SOURCE).options(**self._options, **numbered).mode("append").save()


def _check_session(session: Any) -> None:
    """Refuse Spark Connect, where the process that writes batches has no query id."""
    if "connect" in type(session).__module__:
        raise SqlError("updates per batch cannot be written through Spark Connect", hint=HINT)


def _window(window: WindowSpec) -> tuple[Any, int]:
    """The column of a row's window, and how long a window waits for late rows."""
    from pyspark.sql import functions

    if window.kind is WindowKind.SESSION:
        sessions = session_windows(window)
        gap = functions.session_window("moment", f"{sessions.gap_ms} milliseconds")
        return gap, sessions.grace_ms
    times = time_windows(window)
    size, advance = f"{times.size_ms} milliseconds", f"{times.advance_ms} milliseconds"
    return functions.window("moment", size, advance), times.grace_ms


def _results(step: Aggregate) -> list[Any]:
    """The columns that Spark computes; see GroupOutput."""
    result: list[Any] = []
    first = 0
    for place, call in enumerate(step.calls):
        result += _result(place, call, f"a{first}")
        first += len(call.arguments)
    return result


def _result(place: int, call: AggregateCall, argument: str) -> list[Any]:
    from pyspark.sql import functions

    name, result = function_name(call.function.signature.name), f"r{place}"
    match name:
        case "COUNT":
            counted = argument if call.arguments else functions.lit(1)
            return [functions.count(counted).alias(result)]
        case "SUM":
            return [functions.sum(argument).alias(result)]
        case "AVG":
            total = functions.sum(argument).alias(result)
            return [total, functions.count(argument).alias(f"n{place}")]
        case "MIN":
            return [functions.min(argument).alias(result)]
        case _:
            return [functions.max(argument).alias(result)]
