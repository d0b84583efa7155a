"""Steps that join, and suppress."""

from collections.abc import Callable, Mapping
from typing import Any

from streams.dsl.suppressed import until_time_limit, until_window_closes
from streams.windows import JoinWindows
from tests.kafka_streams_cases import functions
from tests.kafka_streams_cases.building import Building, Operation, Step
from tests.kafka_streams_cases.flows import Flow
from tests.kafka_streams_cases.values import convert


def _join(building: Building, step: Step) -> Flow:
    left, right = building.above(step, "left"), building.above(step, "right")
    value = step.get("value", "string" if functions.gives_text(step["joiner"]) else left.value)
    result = left.but(None, value=value, is_table=step["kind"] in ("table_table", "foreign_key"))
    keywords = KINDS[step["kind"]](step, left, right) | building.stored(step, result)
    if functions.needs_key(step["joiner"]):
        keywords["with_key"] = True
    method = getattr(left.handle, step["op"])
    return result.but(method(right.handle, _joiner(step, value), **keywords))


def _joiner(step: Step, serde: str) -> Callable[..., object]:
    joined = functions.joiner(step["joiner"])
    if functions.needs_key(step["joiner"]):
        return lambda key, left, right: convert(joined(key, left, right), serde)
    return lambda left, right: convert(joined(None, left, right), serde)


def _stream_stream(step: Step, left: Flow, right: Flow) -> dict[str, Any]:
    window = step["window"]
    within = JoinWindows(
        window["before_ms"],
        window["after_ms"],
        window["grace_ms"],
        eager_unmatched=window.get("eager_unmatched", False),
    )
    return {
        "within": within,
        "key": left.key_serde,
        "value": left.value_serde,
        "other_value": right.value_serde,
    }


def _stream_table(step: Step, left: Flow, right: Flow) -> dict[str, Any]:
    keywords: dict[str, Any] = {"key": left.key_serde, "value": left.value_serde}
    if "grace_ms" in step:
        keywords["grace"] = step["grace_ms"]
    return keywords


def _stream_global(step: Step, left: Flow, right: Flow) -> dict[str, Any]:
    key_of = functions.expression(step["key_fn"])
    return {"key_mapper": lambda key, value: convert(key_of(key, value), right.key)}


def _foreign_key(step: Step, left: Flow, right: Flow) -> dict[str, Any]:
    key_of = functions.expression(step["key_fn"])
    return {"foreign_key": lambda key, value: convert(key_of(key, value), right.key)}


KINDS: Mapping[str, Callable[[Step, Flow, Flow], dict[str, Any]]] = {
    "stream_stream": _stream_stream,
    "stream_table": _stream_table,
    "stream_global": _stream_global,
    "table_table": lambda step, left, right: {},
    "foreign_key": _foreign_key,
}


def _suppress(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    limits = {
        name: step[name] for name in ("max_records", "max_bytes", "when_full") if name in step
    }
    if step.get("until_window_closes"):
        return flow.but(flow.handle.suppress(until_window_closes(**limits)))
    held_back = until_time_limit(step["until_time_limit_ms"], **limits)
    return flow.but(flow.handle.suppress(held_back))


OPERATIONS: Mapping[str, Operation] = {
    "join": _join,
    "left_join": _join,
    "outer_join": _join,
    "suppress": _suppress,
}
