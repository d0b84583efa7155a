"""Steps that look at one record, and those between streams and tables."""

from collections.abc import Mapping

from tests.kafka_streams_cases import functions
from tests.kafka_streams_cases.building import Building, Operation, Step, typed
from tests.kafka_streams_cases.flows import Flow
from tests.kafka_streams_cases.processors import processor
from tests.kafka_streams_cases.values import convert


def _filter(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    keywords = building.stored(step, flow) if flow.is_table else {}
    method = getattr(flow.handle, step["op"])
    return flow.but(method(functions.predicate(step["fn"]), **keywords))


def _map(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result, mapper = typed(flow, step), functions.pair(step["fn"])

    def change(key: object, value: object) -> tuple[object, object]:
        new_key, new_value = mapper(key, value)
        return convert(new_key, result.key), convert(new_value, result.value)

    return result.but(flow.handle.map(change))


def _map_values(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result, mapper = typed(flow, step), functions.expression(step["fn"])
    keywords = building.stored(step, result) if flow.is_table else {}

    def change(key: object, value: object) -> object:
        return convert(mapper(key, value), result.value)

    return result.but(flow.handle.map_values(change, with_key=True, **keywords))


def _flat_map(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result, mapper = typed(flow, step), functions.pairs(step["fn"])

    def change(key: object, value: object) -> list[tuple[object, object]]:
        return [
            (convert(new_key, result.key), convert(new_value, result.value))
            for new_key, new_value in functions.as_list(mapper(key, value))
        ]

    return result.but(flow.handle.flat_map(change))


def _flat_map_values(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result, mapper = typed(flow, step), functions.expression(step["fn"])

    def change(key: object, value: object) -> list[object]:
        return [convert(item, result.value) for item in functions.as_list(mapper(key, value))]

    return result.but(flow.handle.flat_map_values(change, with_key=True))


def _select_key(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    result, mapper = typed(flow, step), functions.expression(step["fn"])
    return result.but(
        flow.handle.select_key(lambda key, value: convert(mapper(key, value), result.key))
    )


def _peek(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    return flow.but(flow.handle.peek(lambda key, value: None))


def _merge(building: Building, step: Step) -> Flow:
    first, *others = (building.flows[name] for name in step["from"])
    handle = first.handle
    for other in others:
        handle = handle.merge(other.handle)
    return first.but(handle)


def _split(building: Building, step: Step) -> None:
    flow = building.above(step)
    branched = flow.handle.split(name=step["id"] + "-")
    for branch in step["branches"]:
        branched = branched.branch(functions.predicate(branch["fn"]), name=branch["id"])
    default = step.get("default")
    found = (
        branched.no_default_branch() if default is None else branched.default_branch(name=default)
    )
    for name in [branch["id"] for branch in step["branches"]] + ([default] if default else []):
        building.flows[name] = flow.but(found[step["id"] + "-" + name])


def _repartition(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    return flow.but(
        flow.handle.repartition(name=step.get("name"), key=flow.key_serde, value=flow.value_serde)
    )


def _process(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    return typed(flow, step).but(flow.handle.process(processor(step["fn"])))


def _to_table(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    keywords = {"key": flow.key_serde, "value": flow.value_serde} | building.stored(step, flow)
    return flow.but(flow.handle.to_table(**keywords), is_table=True)


def _to_stream(building: Building, step: Step) -> Flow:
    flow = building.above(step)
    if "fn" not in step:
        return flow.but(flow.handle.to_stream(), is_table=False)
    result, mapper = typed(flow, step), functions.expression(step["fn"])
    handle = flow.handle.to_stream(lambda key, value: convert(mapper(key, value), result.key))
    return result.but(handle, is_table=False)


OPERATIONS: Mapping[str, Operation] = {
    "filter": _filter,
    "filter_not": _filter,
    "map": _map,
    "map_values": _map_values,
    "flat_map": _flat_map,
    "flat_map_values": _flat_map_values,
    "select_key": _select_key,
    "peek": _peek,
    "merge": _merge,
    "split": _split,
    "repartition": _repartition,
    "process": _process,
    "to_table": _to_table,
    "to_stream": _to_stream,
}
