"""The common parts of lowered steps: the query's context, and streams and tables of rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from broker.serde.registry.api import SchemaRegistry
from sql.plan import PlanNode
from sql.rows.row_format import Row
from sql.schema import ROWOFFSET, ROWPARTITION
from streams.dsl.builder import StreamsBuilder
from streams.dsl.logical import ProcessStep, StreamNode
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from streams.processor import Operator

# Any: keys are rows, possibly wrapped in windows.
RowStream = Stream[Any, Any]
RowTable = Table[Any, Any]
PLACE_NAMES = (ROWPARTITION.name, ROWOFFSET.name)  # after a join they have a prefix
# Called when an expression fails on a record, with the step's name, the error and the row.
ProcessingLog = Callable[[str, Exception, Row | None], None]


def ignore_errors(step: str, error: Exception, row: Row | None) -> None:
    """A processing log that discards its entries."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """The shared parts of one query's steps."""

    builder: StreamsBuilder
    registry: SchemaRegistry | None = None
    log: ProcessingLog = ignore_errors
    settings: dict[str, object] = field(default_factory=dict)
    # Topics that several sources of the query read, possibly in different formats.
    shared_topics: set[str] = field(default_factory=set)
    # The names of all columns that its expressions use, once determined.
    columns_used: set[str] = field(default_factory=set)

    def name_of(self, step: PlanNode, suffix: str = "") -> str:
        """The name of a step in the names of stores and internal topics."""
        return f"{step.name.removesuffix('/Source')}{suffix}".replace("/", "-")

    def log_of(self, step: str) -> Callable[[Exception, Row | None], None]:
        """The processing log of one step."""
        log = self.log
        return lambda error, row: log(step, error, row)

    @property
    def needs_place(self) -> bool:
        """Whether the partition and the offset of a row may be used."""
        return not self.columns_used or any(
            each.endswith(PLACE_NAMES) for each in self.columns_used
        )

    def flag(self, name: str) -> bool:
        """A boolean setting; the default is false."""
        return str(self.settings.get(name, "false")).lower() == "true"


def then(stream: RowStream, prefix: str, operator: Operator, *, new_key: bool = False) -> RowStream:
    """The stream after an operator; `new_key` means that keys change."""
    node = stream.node
    graph = node.graph
    step = graph.add(
        ProcessStep(
            name=graph.names.new(prefix),
            parents=(node.step,),
            make=lambda: operator,
            changes_key=new_key,
            keeps_values=False,
        )
    )
    return Stream(
        StreamNode(graph=graph, step=step, needs_repartition=new_key or node.needs_repartition)
    )
