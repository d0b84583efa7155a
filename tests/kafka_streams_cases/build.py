"""Builds the topology of a case with our DSL, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams.topology import Topology
from tests.kafka_streams_cases import grouping, joining, sources, stateless
from tests.kafka_streams_cases.building import Building, Operation, Step
from tests.kafka_streams_cases.flows import Flow, StoreFacts

OPERATIONS: Mapping[str, Operation] = {
    **sources.OPERATIONS,
    **stateless.OPERATIONS,
    **grouping.OPERATIONS,
    **joining.OPERATIONS,
}


class UnknownStep(Exception):
    """An operation that this runner does not know."""


@dataclass(frozen=True, slots=True)
class BuiltCase:
    """A case's topology with what its script must know."""

    topology: Topology
    sources: Mapping[str, tuple[str, str]]
    sinks: Mapping[str, Flow]
    stores: Mapping[str, StoreFacts]
    partitions: int  # of every topic


def build_case(case: Mapping[str, Any]) -> BuiltCase:
    """The topology of a case."""
    building = Building()
    for step in case["topology"]:
        _add(building, step)
    topology = building.builder.build(optimize=bool(case.get("config", {}).get("optimize", False)))
    return BuiltCase(
        topology, building.sources, building.sinks, building.stores, case.get("partitions", 1)
    )


def _add(building: Building, step: Step) -> None:
    operation = OPERATIONS.get(step["op"])
    if operation is None:
        raise UnknownStep(f'the operation "{step["op"]}" is not known')
    flow = operation(building, step)
    if flow is not None and "id" in step:
        building.flows[step["id"]] = flow
