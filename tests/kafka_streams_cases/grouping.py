"""Steps that group, window and aggregate."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.kafka_streams_cases import functions
from tests.kafka_streams_cases.building import Building, Operation, Step, typed
from tests.kafka_streams_cases.flows import Flow, windows_of
from tests.kafka_streams_cases.values import convert


def _group_by_key(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    handle = flow.handle.group_by_key(
        key=flow.key_serde, value=flow.value_serde, name=step.get("name")
    )
    return flow.but(handle)


def _group_by(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result = typed(flow, step).but(None, windows=None)
    serdes = {"key": result.key_serde, "value": result.value_serde}
    if not flow.is_table:
        key_of = functions.expression(step["fn"])
        return result.but(
            flow.handle.group_by(
                lambda key, value: convert(key_of(key, value), result.key), **serdes
            )
        )
    pair_of = functions.pair(step["fn"])

    def regroup(key: object, value: object) -> tuple[object, object] | None:
        found = pair_of(key, value)
        if found is None:
            return None
        return convert(found[0], result.key), convert(found[1], result.value)

    return result.but(flow.handle.group_by(regroup, **serdes))


def _windowed_by(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    windows, emit = windows_of(step["window"]), step.get("emit", "on_update")
    keywords = {"emit": emit} if "emit" in step else {}
    return flow.but(flow.handle.windowed_by(windows, **keywords), windows=windows, emit=emit)


def _count(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result = flow.but(None, value=step.get("value", "long"), is_table=True)
    return result.but(flow.handle.count(**building.stored(step, result)))


def _reduce(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result = typed(flow, step).but(None, is_table=True)
    keywords = building.stored(step, result)

    def reducer(spec: Any) -> Callable[[object, object], object]:
        folded = functions.fold(spec)
        return lambda aggregate, value: convert(folded(None, aggregate, value), result.value)

    if flow.is_table:
        handle = flow.handle.reduce(reducer(step["adder"]), reducer(step["subtractor"]), **keywords)
    else:
        handle = flow.handle.reduce(reducer(step["fn"]), **keywords)
    return result.but(handle)


def _aggregate(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result = typed(flow, step).but(None, is_table=True)
    keywords = {"value": result.value_serde} | building.stored(step, result)
    arguments: list[Any] = [lambda: convert(step["init"], result.value)]
    for name in ("adder", "subtractor"):
        if name in step:
            arguments.append(adder(step[name], result.value))
    if "merger" in step:
        merged = functions.fold(step["merger"])
        arguments.append(lambda key, left, right: convert(merged(key, left, right), result.value))
    return result.but(flow.handle.aggregate(*arguments, **keywords))


def adder(spec: Any, serde: str) -> Callable[[object, object, object], object]:
    """A fold in the order of arguments of the DSL's aggregators."""
    folded = functions.fold(spec)
    return lambda key, value, aggregate: convert(folded(key, aggregate, value), serde)


def _cogroup(building: Building, step: Step) -> Flow:
    handle: Any = None
    value = step["value"]
    for part in step["cogroups"]:
        grouped, added = building.flows[part["from"]], adder(part["adder"], value)
        if handle is None:
            handle = grouped.handle.cogroup(added)
        else:
            handle = handle.cogroup(grouped.handle, added)
    return building.flows[step["cogroups"][0]["from"]].but(handle, value=value)


OPERATIONS: Mapping[str, Operation] = {
    "group_by_key": _group_by_key,
    "group_by": _group_by,
    "windowed_by": _windowed_by,
    "count": _count,
    "reduce": _reduce,
    "aggregate": _aggregate,
    "cogroup": _cogroup,
}
