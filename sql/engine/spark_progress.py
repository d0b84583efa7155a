"""SparkProgress: the shown parts of Spark's report on the last batch of a query."""

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SparkProgress:
    """The progress of a query on Spark; clients of ksqlDB ignore unknown members."""

    engine: str
    batch_id: int
    batch_duration_ms: int
    input_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    # Offsets of the sources that the batch did not read; None if Spark does not report them.
    offsets_behind: int | None

    @property
    def text(self) -> str:
        """In one line."""
        behind = "" if self.offsets_behind is None else f", {self.offsets_behind:,} behind"
        return (
            f"batch {self.batch_id} in {self.batch_duration_ms:,} ms, {self.input_rows:,} rows, "
            f"{self.processed_rows_per_second:,.0f} rows/s{behind}"
        )


# Any, here and below: the members of Spark's report have many types.
def spark_progress(report: Mapping[str, Any]) -> SparkProgress | None:
    """The parts of PySpark's report; None if there was no batch yet."""
    if report.get("batchId") is None:
        return None
    sources = report.get("sources") or ()
    return SparkProgress(
        "spark",
        int(report["batchId"]),
        int((report.get("durationMs") or {}).get("triggerExecution") or 0),
        sum(int(each.get("numInputRows") or 0) for each in sources),
        sum(_rate(each.get("inputRowsPerSecond")) for each in sources),
        sum(_rate(each.get("processedRowsPerSecond")) for each in sources),
        _behind(sources),
    )


def _rate(found: Any) -> float:
    """A rate; Spark reports NaN or infinity for batches that took no time."""
    rate = float(found or 0)
    return rate if 0 <= rate < float("inf") else 0.0


def _behind(sources: Any) -> int | None:
    result = None
    for each in sources:
        end, latest = _tree(each.get("endOffset")), _tree(each.get("latestOffset"))
        if end is None or latest is None:
            continue
        read = dict(_places(end))
        left = (max(0, at - read.get(place, at)) for place, at in _places(latest))
        result = (result or 0) + sum(left)
    return result


def _tree(offset: Any) -> Mapping[str, Any] | None:
    """Offsets by topic and partition: an object, or its JSON or, with Connect, Python's repr."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            try:
                offset = ast.literal_eval(offset)
            except (ValueError, SyntaxError):
                return None
    return offset if isinstance(offset, Mapping) else None


def _places(tree: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    for topic, partitions in tree.items():
        for partition, at in partitions.items():
            yield (topic, str(partition)), int(at)
