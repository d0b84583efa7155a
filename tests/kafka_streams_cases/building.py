"""Building: what the steps of a case share while its topology is built."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streams.dsl.builder import StreamsBuilder
from tests.kafka_streams_cases.flows import Flow, StoreFacts, default_retention_ms

Step = dict[str, Any]


@dataclass(slots=True)
class Building:
    """A topology while it is built, and what the script must know to write and read."""

    builder: StreamsBuilder = field(default_factory=StreamsBuilder)
    flows: dict[str, Flow] = field(default_factory=dict)
    sources: dict[str, tuple[str, str]] = field(default_factory=dict)  # topic: serdes
    sinks: dict[str, Flow] = field(default_factory=dict)
    stores: dict[str, StoreFacts] = field(default_factory=dict)

    def above(self, step: Step, name: str = "from") -> Flow:
        """The flow that a step reads."""
        return self.flows[step[name]]

    def stored(self, step: Step, flow: Flow) -> dict[str, Any]:
        """The keywords of a table that a step keeps in a store, remembered for the script."""
        if "store" not in step and "retention_ms" not in step and "caching" not in step:
            return {}
        keywords: dict[str, Any] = {"value": flow.value_serde}
        if flow.key_serde is not None:
            keywords["key"] = flow.key_serde
        if "store" in step:
            keywords["store"] = step["store"]
            self.stores[step["store"]] = StoreFacts(
                flow.key,
                flow.value,
                flow.windows,
                None
                if flow.windows is None
                else step.get("retention_ms", default_retention_ms(flow.windows)),
                keeps_the_edge=flow.emit == "on_close",
            )
        if "caching" in step:
            keywords["caching"] = step["caching"]
        if "retention_ms" in step:
            keywords["retention"] = step["retention_ms"]
        return keywords


Operation = Callable[[Building, Step], Flow | None]


def typed(flow: Flow, step: Step) -> Flow:
    """The flow with the serdes that the step gives."""
    return flow.but(None, key=step.get("key", flow.key), value=step.get("value", flow.value))
