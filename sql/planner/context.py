"""QueryContext: the data that all parts of the planning of one query share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sql.analyse.expressions import ExpressionAnalyser
from sql.analyse.sources import check_timestamp, default_format
from sql.analyse.trees import changed
from sql.catalog import Catalog, SourceInfo, TimestampColumn, WindowInfo
from sql.datatypes import Column
from sql.expressions import ColumnValue, TypedExpression
from sql.functions.registry import FunctionRegistry
from sql.plan import PlanNode, Project
from sql.planner.aliases import joined_name
from sql.planner.references import References, RowScope
from sql.properties import DEFAULT_KEY_FORMAT, Settings
from sql.schema import Schema
from sql.syntax import expressions as ex
from sql.syntax.queries import Query

Typed = tuple[str, TypedExpression]
PRESERVE_NULLS = "ksql.cast.strings.preserve.nulls"


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of a persistent query."""

    name: str
    statement: str  # CREATE TABLE AS SELECT and so on
    target: SourceInfo | None = None  # of INSERT INTO
    timestamp: TimestampColumn | None = None


@dataclass(frozen=True, slots=True)
class QueryOutput:
    """The result of a query, before it is written."""

    schema: Schema
    is_table: bool
    window: WindowInfo | None
    keyless: bool  # PARTITION BY NULL


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The steps of a query without its sink, and their result."""

    node: PlanNode
    result: QueryOutput
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryContext:
    """A query, its sources, and the destination of its results: a client or a topic."""

    catalog: Catalog
    functions: FunctionRegistry
    settings: Settings
    query: Query
    references: References
    destination: Destination | None

    @property
    def default_key_format(self) -> str:
        """The default format of keys."""
        return default_format(self.settings, DEFAULT_KEY_FORMAT) or "KAFKA"

    @property
    def left(self) -> SourceInfo:
        """The first source of FROM, whose properties are inherited."""
        return self.references.sources[0].info

    def analyser(
        self,
        node: PlanNode,
        replaced: Mapping[ex.Expression, ColumnValue] | None = None,
        clause: str = "",
    ) -> ExpressionAnalyser:
        """An analyser for expressions on the rows of a step."""
        scope = RowScope(node.shape, is_join=self.references.is_join, clause=clause)
        return ExpressionAnalyser(
            scope,
            self.functions,
            self.catalog.types,
            replaced,
            null_texts=self.settings.get(PRESERVE_NULLS) is False,
        )

    def row_form(self, expression: ex.Expression) -> ex.Expression:
        """The expression with the column names of rows."""
        is_join = self.references.is_join

        def change(each: ex.Expression) -> ex.Expression | None:
            if not isinstance(each, ex.Name):
                return None
            if each.source is None:
                return each
            name = joined_name(each.source, each.name) if is_join else each.name
            return replace(each, name=name, source=None)

        return changed(expression, change)

    def shown(self, node: PlanNode, typed: Sequence[Typed], *, keyless: bool = False) -> QueryPlan:
        """A projection for a client: all columns in order."""
        project = Project("Project", node, tuple(typed), replace(node.shape, row=columns(typed)))
        return self.planned(project, keyless=keyless)

    def planned(self, node: PlanNode, *, keyless: bool = False) -> QueryPlan:
        """The plan that ends with a projection."""
        shape = node.shape
        result = QueryOutput(Schema(shape.key, shape.row), shape.is_table, shape.window, keyless)
        if self.destination is not None:
            check_timestamp((*shape.key, *shape.row), self.destination.timestamp)
        return QueryPlan(node, result, tuple(each.info.name for each in self.references.sources))


def columns(typed: Sequence[Typed]) -> tuple[Column, ...]:
    """The columns of a projection."""
    return tuple(Column(name, each.type) for name, each in typed if each.type is not None)
