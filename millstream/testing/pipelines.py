"""Pipelines: the topology or SQL of a test, with its topics and serdes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.serde import Serde
from sql.parse import parse
from sql.properties import read_source_properties
from sql.syntax.statements import CreateSource
from streams.config import StreamsConfig
from streams.serdes import serde_or_default
from streams.topology import SourceNode, Topology

Settings = Mapping[str, object]
Serdes = tuple[Serde[Any] | None, Serde[Any] | None]  # Any: the types of a topic's records


@dataclass(frozen=True, slots=True)
class StreamsPipeline:
    """A function that builds a topology; each process calls it once."""

    build: Callable[[], Topology]
    settings: Settings

    def sources(self) -> dict[str, SourceNode]:
        """The nodes that read topics, by topic."""
        topology = self.build()
        nodes = [
            *(node for part in topology.sub_topologies for node in part.nodes),
            *(store.source for store in topology.global_stores.values()),
        ]
        return {
            topic: node
            for node in nodes
            if isinstance(node, SourceNode)
            for topic in node.topics
            if topic not in topology.repartition_topics
        }

    def serdes(self, sources: Mapping[str, SourceNode], topic: str) -> Serdes:
        """The serdes of a topic in the pipeline."""
        config = StreamsConfig.of(application_id="application", **self.settings)
        source = sources.get(topic)
        key, value = (None, None) if source is None else (source.key_serde, source.value_serde)
        return (
            serde_or_default(key, config.default_key_serde),
            serde_or_default(value, config.default_value_serde),
        )


@dataclass(frozen=True, slots=True)
class SqlPipeline:
    """Statements; each process of the SQL server runs them as its queries file."""

    text: str
    settings: Settings

    def partitions(self) -> dict[str, int]:
        """The partition counts of topics in the statements."""
        clauses = [
            read_source_properties(each.statement.properties)
            for each in parse(self.text)
            if isinstance(each.statement, CreateSource)
        ]
        return {each.topic: each.partitions for each in clauses if each.topic and each.partitions}


Pipeline = StreamsPipeline | SqlPipeline


def sql_pipeline(given: str | Path, settings: Settings) -> SqlPipeline:
    """A pipeline of statements, or of a file of statements."""
    if isinstance(given, Path) or ";" not in given:
        given = Path(given).read_text()
    return SqlPipeline(given, settings)
