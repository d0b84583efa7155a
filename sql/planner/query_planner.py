"""QueryPlanner: plans one SELECT, step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sql.analyse.expressions import ExpressionAnalyser
from sql.catalog import Catalog
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.expressions import ColumnValue
from sql.functions.registry import FunctionRegistry
from sql.plan import Explode, Filter, PlanNode, Rekey, Shape
from sql.planner.aggregation import aggregates_in
from sql.planner.aliases import joined_name
from sql.planner.context import Destination, QueryContext, QueryPlan
from sql.planner.groups import Grouping
from sql.planner.join_tree import JoinTree, join_tree
from sql.planner.projection import Projection
from sql.planner.references import BOUND_NAMES, References, RowScope, maybe_synthetic
from sql.planner.relations import (
    NO_WINDOWED_REKEY,
    JoinPlanner,
    check_kafka_values,
    from_sources,
    internal_value_format,
    new_key,
    rekeyed,
    scan,
)
from sql.planner.selection import Selection, read_selection
from sql.planner.table_functions import TableCalls
from sql.planner.windows import internal_key_format
from sql.properties import Settings
from sql.syntax import expressions as ex
from sql.syntax.queries import Query
from sql.syntax.statements import SourceKind


class QueryPlanner:
    """Plans one query; an instance is used once."""

    def __init__(
        self,
        catalog: Catalog,
        functions: FunctionRegistry,
        settings: Settings,
        query: Query,
        destination: Destination | None = None,
    ) -> None:
        """Without a destination, the results are sent to a client."""
        names = [
            (each.name, each.alias) for each in (query.source, *(j.right for j in query.joins))
        ]
        bounded = BOUND_NAMES if query.window is not None else frozenset[str]()
        self._references = References(from_sources(names, catalog), bounded)
        self._context = QueryContext(
            catalog, functions, settings, query, self._references, destination
        )
        self._query = query
        self._functions = functions
        self._tree: JoinTree | None = None

    def plan(self) -> QueryPlan:
        """The plan of the query."""
        query, references = self._query, self._references
        if query.joins:
            self._tree = join_tree(query, references, self._context.default_key_format)
        self._check_sources()
        selection = self._selection()
        where, having = self._qualified(query.where), self._qualified(query.having)
        grouping = tuple(map(references.qualified, query.group_by))
        partitioning = tuple(map(references.qualified, query.partition_by))
        self._check_names({"WHERE": [where], "GROUP BY": grouping, "PARTITION BY": partitioning})
        self._check_names({"HAVING": [having], "SELECT": selection.expressions()})
        node = self._from(selection)
        groups = self._groups(selection, grouping, having)
        if where is not None:
            condition = self._context.analyser(node).condition(where, "WHERE")
            node = Filter("WhereFilter", node, condition)
            if groups is not None:
                groups.check_where(where)
        if partitioning:
            node = self._partitioned(node, partitioning)
        node, replaced = self._exploded(node, selection, is_grouped=groups is not None)
        if groups is not None:
            return groups.plan(node, having)
        projection = Projection(self._context, selection, self._tree, partitioning)
        return projection.plan(node, replaced)

    def _qualified(self, expression: ex.Expression | None) -> ex.Expression | None:
        return None if expression is None else self._references.qualified(expression)

    def _groups(
        self,
        selection: Selection,
        grouping: Sequence[ex.Expression],
        having: ex.Expression | None,
    ) -> Grouping | None:
        used = [*selection.expressions(), *([] if having is None else [having])]
        calls = (call for each in used for call in aggregates_in(each, self._functions))
        if not grouping and next(calls, None) is None:
            return None
        return Grouping(self._context, selection, self._tree, grouping)

    def _check_sources(self) -> None:
        sources = list(self._references.sources)
        if self._context.destination is not None:
            for each in sources:
                if each.info.kind is SourceKind.TABLE and each.info.window is not None:
                    raise StatementFailed(
                        "KSQL does not support persistent queries on windowed tables."
                    )
        if self._query.joins:
            check_kafka_values(sources, "JOIN")
        if self._query.group_by:
            check_kafka_values(sources, "GROUP BY")

    def _selection(self) -> Selection:
        is_join = self._references.is_join
        row = tuple(
            Column(joined_name(each.alias, column.name) if is_join else column.name, column.type)
            for each in self._references.sources
            for column in each.row
        )
        scope = RowScope(Shape((), row, is_table=False), is_join=is_join, clause="SELECT")
        types = self._context.catalog.types
        analyser = ExpressionAnalyser(scope, self._functions, types)
        return read_selection(
            self._query.items,
            self._references,
            lambda each: analyser.typed(each).type,
            persistent=self._context.destination is not None,
        )

    def _check_names(self, clauses: Mapping[str, Sequence[ex.Expression | None]]) -> None:
        bounded = self._query.window is not None and not self._query.joins
        bounds = tuple(BOUND_NAMES) if bounded else ()
        for clause, expressions in clauses.items():
            for each in expressions:
                if each is None:
                    continue
                others = () if clause == "PARTITION BY" else bounds
                if clause == "SELECT" and self._query.joins and not self._query.group_by:
                    others = (*bounds, *_synthetic_names(each))
                self._references.check(each, clause, others=others)

    def _from(self, selection: Selection) -> PlanNode:
        if self._tree is None:
            return scan(self._references.sources[0], "KsqlTopic/Source")
        catalog = self._context.catalog
        return JoinPlanner(self._functions, catalog, selection.contains).plan(self._tree)

    def _partitioned(self, node: PlanNode, partitioning: tuple[ex.Expression, ...]) -> PlanNode:
        if node.shape.is_table:
            raise StatementFailed("PARTITION BY is not supported on tables, only on streams.")
        source, default = self._context.left, self._context.default_key_format
        value_format = internal_value_format(source)
        nulls = [each for each in partitioning if isinstance(each, ex.Null)]
        if nulls and len(partitioning) > 1:
            raise StatementFailed("Cannot PARTITION BY multiple columns including NULL")
        if nulls:
            shape = replace(node.shape, key=())
            key_format = replace(source.key_format, name="NONE")
            return Rekey("PartitionBy", node, (), key_format, value_format, shape)
        analyser = self._context.analyser(node, clause="PARTITION BY")
        keys = [(each, analyser.typed(each)) for each in partitioning]
        names = [each.name if isinstance(each, ColumnValue) else None for _, each in keys]
        if names == [each.name for each in node.shape.key]:
            return node
        if node.shape.window is not None:
            raise StatementFailed(NO_WINDOWED_REKEY)
        key_format = internal_key_format(source.key_format, new_key(node, keys), default)
        return rekeyed(node, keys, "PartitionBy", (key_format, value_format))

    def _exploded(
        self, node: PlanNode, selection: Selection, *, is_grouped: bool
    ) -> tuple[PlanNode, Mapping[ex.Expression, ColumnValue]]:
        calls = TableCalls(self._functions)
        for each in selection.expressions():
            calls.collect(each)
        if not calls.found:
            return node, {}
        if is_grouped:
            raise StatementFailed("Table functions cannot be used with aggregations.")
        if node.shape.is_table:
            raise StatementFailed("Table source is not supported with table functions")
        made, columns = calls.made(self._context.analyser(node))
        start = len(node.shape.row)
        replaced: dict[ex.Expression, ColumnValue] = {
            call: ColumnValue(start + n, column.name, column.type)
            for n, (call, column) in enumerate(zip(calls.found, columns, strict=True))
        }
        shape = replace(node.shape, row=(*node.shape.row, *columns))
        return Explode("FlatMap", node, made, shape), replaced


def _synthetic_names(expression: ex.Expression) -> tuple[str, ...]:
    """A selected name that may be the synthetic key of a join."""
    if isinstance(expression, ex.Name) and maybe_synthetic(expression.name):
        return (expression.name,)
    return ()
