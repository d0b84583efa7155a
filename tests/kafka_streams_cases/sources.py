"""Steps that read topics and write them."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from streams.stream_time import (
    fail_on_invalid_timestamp,
    log_and_skip_on_invalid_timestamp,
    use_partition_time_on_invalid_timestamp,
)
from tests.kafka_streams_cases import functions
from tests.kafka_streams_cases.building import Building, Operation, Step
from tests.kafka_streams_cases.flows import Flow
from tests.kafka_streams_cases.values import SERDES, text


def _time_in_value(key: object, value: object, timestamp_ms: int, partition_time_ms: int) -> int:
    return int(text(value))


TIMESTAMP_EXTRACTORS: Mapping[str, Callable[[Any, Any, int, int], int]] = {
    "fail": fail_on_invalid_timestamp,
    "log_and_skip": log_and_skip_on_invalid_timestamp,
    "partition_time": use_partition_time_on_invalid_timestamp,
    "value": _time_in_value,
}


def _consumed(step: Step) -> tuple[str, str, dict[str, Any]]:
    key, value = step.get("key", "string"), step.get("value", "string")
    keywords: dict[str, Any] = {"key": SERDES[key], "value": SERDES[value]}
    if "timestamp_extractor" in step:
        keywords["timestamp_extractor"] = TIMESTAMP_EXTRACTORS[step["timestamp_extractor"]]
    return key, value, keywords


def _stream(building: Building, step: Step) -> Flow:
    key, value, keywords = _consumed(step)
    building.sources.update(dict.fromkeys(step["topics"], (key, value)))
    topics = re.compile(step["pattern"]) if "pattern" in step else step["topics"]
    return Flow(building.builder.stream(topics, **keywords), key, value)


def _table(building: Building, step: Step) -> Flow:
    key, value, keywords = _consumed(step)
    building.sources[step["topic"]] = (key, value)
    flow = Flow(None, key, value, is_table=True)
    keywords |= building.stored(step, flow)
    if "versioned_history_ms" in step:
        keywords["versioned_history"] = step["versioned_history_ms"]
    return flow.but(building.builder.table(step["topic"], **keywords))


def _global_table(building: Building, step: Step) -> Flow:
    key, value, keywords = _consumed(step)
    building.sources[step["topic"]] = (key, value)
    flow = Flow(None, key, value, is_table=True)
    keywords |= building.stored(step, flow)
    if "versioned_history_ms" in step:
        keywords["versioned_history"] = step["versioned_history_ms"]
    return flow.but(building.builder.global_table(step["topic"], **keywords))


def _to(building: Building, step: Step) -> None:
    flow = building.above(step)
    target: Any = step.get("topic")
    if "topic_fn" in step:
        chosen = functions.expression(step["topic_fn"])

        def target(key: object, value: object, *rest: object) -> str:
            return text(chosen(key, value))

    building.sinks.update(dict.fromkeys(step.get("topics", [step.get("topic")]), flow))
    flow.handle.to(target, key=flow.key_serde, value=flow.value_serde)


OPERATIONS: Mapping[str, Operation] = {
    "stream": _stream,
    "table": _table,
    "global_table": _global_table,
    "to": _to,
}
