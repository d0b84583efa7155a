"""QueryPlanner: one SELECT, step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sql.analyse.expression_text import expression_text
from sql.analyse.expressions import ExpressionAnalyser, converted
from sql.analyse.sources import default_format
from sql.analyse.trees import changed
from sql.catalog import Catalog, SourceInfo, WindowInfo
from sql.datatypes import Column, DecimalType
from sql.errors import StatementFailed
from sql.expressions import ColumnValue, TypedExpression
from sql.functions.registry import FunctionRegistry
from sql.plan import Aggregate, Explode, Filter, PlanNode, Project, Rekey, Shape
from sql.planner.aggregation import (
    AggregateCalls,
    GroupRules,
    aggregates_in,
    kept_columns,
    with_argument,
)
from sql.planner.aliases import Aliases, joined_name
from sql.planner.join_tree import JoinTree, join_tree
from sql.planner.references import References, RowScope, maybe_synthetic
from sql.planner.relations import (
    NO_WINDOWED_REKEY,
    JoinPlanner,
    check_kafka_values,
    from_sources,
    internal_value_format,
    rekeyed,
    scan,
)
from sql.planner.selection import (
    BOUND_NAMES,
    Selected,
    Selection,
    StarItem,
    missing_keys,
    read_selection,
    repeated_key,
)
from sql.planner.sinks import Result
from sql.planner.table_functions import TableCalls
from sql.planner.windows import internal_key_format, window_info, window_spec
from sql.properties import DEFAULT_KEY_FORMAT, Settings
from sql.schema import ROWTIME, WINDOW_BOUNDS, Schema
from sql.syntax import expressions as ex
from sql.syntax.queries import Emit, Query
from sql.syntax.statements import SourceKind

NO_VALUES = "The projection contains no value columns."
ONE = ex.IntegerLiteral(1)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The steps of a query without its sink, and what they give."""

    node: PlanNode
    result: Result
    sources: tuple[str, ...]
    ungrouped: str | None = None  # an aggregate without a GROUP BY, as text


class QueryPlanner:
    """Plans one query; use it once."""

    def __init__(
        self,
        catalog: Catalog,
        functions: FunctionRegistry,
        settings: Settings,
        query: Query,
        *,
        persistent: bool,
    ) -> None:
        """Persistent queries are written to a topic, so their keys matter."""
        self.sink_name = ""
        self.target: SourceInfo | None = None
        self._catalog = catalog
        self._functions = functions
        self._settings = settings
        self._default_key_format = default_format(settings, DEFAULT_KEY_FORMAT) or "KAFKA"
        self._query = query
        self._persistent = persistent
        names = [
            (each.name, each.alias) for each in (query.source, *(j.right for j in query.joins))
        ]
        sources = from_sources(names, catalog, is_join=bool(query.joins))
        self._references = References(sources)
        self._tree: JoinTree | None = None
        self._row_names: dict[ex.Expression, str] = {}

    def plan(self) -> QueryPlan:
        """The steps of the query."""
        query, references = self._query, self._references
        if query.joins:
            self._tree = join_tree(query, references, self._default_key_format)
        self._check_sources()
        selection = self._selection()
        where = self._qualified(query.where)
        having = self._qualified(query.having)
        grouping = tuple(map(references.qualified, query.group_by))
        partitioning = tuple(map(references.qualified, query.partition_by))
        self._check_names(where, grouping, partitioning, having, selection)
        node = self._from(selection)
        if where is not None:
            if grouping:
                self._rules(node, grouping)
            condition = self._analyser(node).condition(where, "WHERE")
            node = Filter("WhereFilter", node, condition)
        if partitioning:
            node = self._partitioned(node, partitioning)
        node, replaced = self._exploded(node, selection, grouping)
        calls = [
            call
            for each in (*selection.expressions(), *([having] if having else []))
            for call in aggregates_in(each, self._functions)
        ]
        if grouping or calls:
            return self._aggregated(node, selection, grouping, having)
        return self._projected(node, selection, partitioning, replaced)

    def _qualified(self, expression: ex.Expression | None) -> ex.Expression | None:
        return None if expression is None else self._references.qualified(expression)

    def _check_sources(self) -> None:
        sources = list(self._references.sources)
        if self._persistent:
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
        scope = RowScope(self._source_shape(), is_join=self._references.is_join, clause="SELECT")
        analyser = ExpressionAnalyser(scope, self._functions, self._catalog.types)
        return read_selection(
            self._query.items,
            self._references,
            lambda each: analyser.typed(each).type,
            persistent=self._persistent,
        )

    def _source_shape(self) -> Shape:
        sources, is_join = self._references.sources, self._references.is_join
        row = tuple(
            Column(joined_name(each.alias, column.name) if is_join else column.name, column.type)
            for each in sources
            for column in each.row
        )
        return Shape((), row, is_table=False)

    def _check_names(
        self,
        where: ex.Expression | None,
        grouping: Sequence[ex.Expression],
        partitioning: Sequence[ex.Expression],
        having: ex.Expression | None,
        selection: Selection,
    ) -> None:
        bounds = tuple(BOUND_NAMES) if self._query.window is not None else ()
        check = self._references.check
        if where is not None:
            check(where, "WHERE", others=bounds)
        for each in grouping:
            check(each, "GROUP BY", others=bounds)
        for each in partitioning:
            check(each, "PARTITION BY")
        if having is not None:
            check(having, "HAVING", others=bounds)
        for each in selection.expressions():
            others = bounds
            if self._query.joins and not grouping:
                others = (*bounds, *self._synthetic_names(each))
            check(each, "SELECT", others=others)

    def _synthetic_names(self, expression: ex.Expression) -> tuple[str, ...]:
        is_name = isinstance(expression, ex.Name)
        return (expression.name,) if is_name and maybe_synthetic(expression.name) else ()  # type: ignore[union-attr]

    def _analyser(
        self,
        node: PlanNode,
        replaced: Mapping[ex.Expression, ColumnValue] | None = None,
        clause: str = "",
    ) -> ExpressionAnalyser:
        scope = RowScope(node.shape, is_join=self._references.is_join, clause=clause)
        return ExpressionAnalyser(scope, self._functions, self._catalog.types, replaced)

    def _from(self, selection: Selection) -> PlanNode:
        if self._tree is None:
            return scan(self._references.sources[0], "KsqlTopic/Source")
        return JoinPlanner(self._functions, self._catalog, selection.contains).plan(self._tree)

    def _partitioned(self, node: PlanNode, partitioning: tuple[ex.Expression, ...]) -> PlanNode:
        if node.shape.is_table:
            raise StatementFailed("PARTITION BY is not supported on tables, only on streams.")
        source = self._references.sources[0].info
        nulls = [each for each in partitioning if isinstance(each, ex.Null)]
        if nulls and len(partitioning) > 1:
            raise StatementFailed("Cannot PARTITION BY multiple columns including NULL")
        if nulls:
            shape = replace(node.shape, key=())
            formats = (replace(source.key_format, name="NONE"), internal_value_format(source))
            return Rekey("PartitionBy", node, (), formats[0], formats[1], shape)
        analyser = self._analyser(node, clause="PARTITION BY")
        typed = [analyser.typed(each) for each in partitioning]
        names = [each.name if isinstance(each, ColumnValue) else None for each in typed]
        if names == [each.name for each in node.shape.key]:
            return node
        if node.shape.window is not None:
            raise StatementFailed(NO_WINDOWED_REKEY)
        columns = [Column("", each.type) for each in typed if each.type is not None]
        key_format = internal_key_format(source.key_format, columns, self._default_key_format)
        keys = list(zip(partitioning, typed, strict=True))
        return rekeyed(node, keys, "PartitionBy", (key_format, internal_value_format(source)))

    def _exploded(
        self, node: PlanNode, selection: Selection, grouping: Sequence[ex.Expression]
    ) -> tuple[PlanNode, Mapping[ex.Expression, ColumnValue]]:
        calls = TableCalls(self._functions)
        for each in selection.expressions():
            calls.collect(each)
        if not calls.found:
            return node, {}
        if grouping or any(
            True for each in selection.expressions() for _ in aggregates_in(each, self._functions)
        ):
            raise StatementFailed("Table functions cannot be used with aggregations.")
        if node.shape.is_table:
            raise StatementFailed("Table source is not supported with table functions")
        made, columns = calls.made(self._analyser(node))
        start = len(node.shape.row)
        replaced: dict[ex.Expression, ColumnValue] = {
            call: ColumnValue(start + n, column.name, column.type)
            for n, (call, column) in enumerate(zip(calls.found, columns, strict=True))
        }
        shape = replace(node.shape, row=(*node.shape.row, *columns))
        return Explode("FlatMap", node, made, shape), replaced

    def _expanded(self, node: PlanNode, selection: Selection) -> list[Selected]:
        found: list[Selected] = []
        for item in selection.items:
            if isinstance(item, StarItem):
                found.extend(self._star(node, item.source))
            else:
                found.append(item)
        return found

    def _star(self, node: PlanNode, source: str | None) -> list[Selected]:
        step: PlanNode = node
        while isinstance(step, Explode | Filter):
            step = step.input
        if isinstance(step, Rekey):
            return _rekeyed_star(step)
        found: list[Selected] = []
        is_join = self._references.is_join
        if source is None and self._tree is not None and self._tree.has_synthetic_key:
            key = node.shape.key[0].name
            found.append(Selected(key, ex.Name(key), from_star=True))
        for each in self._references.sources:
            if source not in (None, each.alias):
                continue
            bounds = WINDOW_BOUNDS if each.info.window is not None else ()
            schema = each.info.schema
            headers = (Column(header.name, header.type) for header in schema.headers)
            for column in (*schema.key, *bounds, *schema.value, *headers):
                name = joined_name(each.alias, column.name) if is_join else column.name
                found.append(Selected(name, ex.Name(column.name, each.alias), from_star=True))
        return found

    def _projected(
        self,
        node: PlanNode,
        selection: Selection,
        partitioning: Sequence[ex.Expression],
        replaced: Mapping[ex.Expression, ColumnValue],
    ) -> QueryPlan:
        self._check_window_use()
        key_columns = self._key_values(node, partitioning)
        analyser = self._analyser(node, {**replaced, **key_columns})
        items = self._expanded(node, selection)
        typed = [
            (item.name, self._cast_literal(n, analyser.select_item(item.expression), item))
            for n, item in enumerate(items)
        ]
        keyless = any(isinstance(each, ex.Null) for each in partitioning)
        if not self._persistent:
            return self._transient(node, typed, keyless=keyless)
        self._check_keys_selected(node, selection, partitioning)
        key, values = _split(node.shape, typed)
        if not values:
            raise StatementFailed(NO_VALUES)
        shape = Shape(
            key,
            tuple(Column(name, each.type) for name, each in values if each.type is not None),
            node.shape.is_table,
            node.shape.window,
        )
        project = Project("Project", node, values, shape)
        return self._planned(project, keyless=keyless)

    def _key_values(
        self, node: PlanNode, partitioning: Sequence[ex.Expression]
    ) -> dict[ex.Expression, ColumnValue]:
        """Selected PARTITION BY expressions are the key's columns."""
        step: PlanNode = node
        while isinstance(step, Explode | Filter):
            step = step.input
        if not isinstance(step, Rekey) or step.name != "PartitionBy" or not step.shape.key:
            return {}
        places = {each.name: n for n, each in enumerate(step.shape.row)}
        return {
            expression: ColumnValue(places[column.name], column.name, column.type)
            for expression, column in zip(partitioning, step.shape.key, strict=True)
        }

    def _cast_literal(self, place: int, typed: TypedExpression, item: Selected) -> TypedExpression:
        """Numbers that INSERT INTO writes into a decimal column become such decimals."""
        if self.target is None or place >= len(self.target.schema.columns):
            return typed
        wanted = self.target.schema.columns[place].type
        literals = (ex.IntegerLiteral, ex.DecimalLiteral, ex.DoubleLiteral)
        if isinstance(wanted, DecimalType) and isinstance(item.expression, literals):
            return converted(typed, wanted)
        return typed

    def _check_window_use(self) -> None:
        if self._query.window is not None:
            place = self._query.window.position
            where = f"Line: {place.line}, Col: {place.column}: " if place.line else ""
            raise StatementFailed(f"{where}WINDOW clause requires a GROUP BY clause.")
        if self._query.emit is Emit.FINAL:
            raise StatementFailed("EMIT FINAL is only supported for windowed aggregations.")
        if self._query.having is not None:
            raise StatementFailed("HAVING requires a GROUP BY clause.")

    def _check_keys_selected(
        self, node: PlanNode, selection: Selection, partitioning: Sequence[ex.Expression]
    ) -> None:
        if partitioning and not any(isinstance(each, ex.Null) for each in partitioning):
            if not all(map(selection.contains, partitioning)):
                raise missing_keys(self.sink_name, "partitioning expression", partitioning)
        elif partitioning:
            return
        elif self._tree is not None:
            self._check_join_key_selected(node, selection, self._tree)
        else:
            source = self._references.sources[0]
            keys = [ex.Name(each.name, source.alias) for each in source.info.schema.key]
            if not all(map(selection.contains, keys)):
                shown = [ex.Name(each.name) for each in keys]
                raise missing_keys(self.sink_name, "key column", shown)

    def _check_join_key_selected(
        self, node: PlanNode, selection: Selection, tree: JoinTree
    ) -> None:
        if tree.is_foreign:
            source = self._references.sources[0]
            missing = [
                each.name
                for each in source.info.schema.key
                if not selection.contains(ex.Name(each.name, source.alias))
            ]
            if missing:
                plural = "s" if len(missing) > 1 else ""
                raise StatementFailed(
                    f"Primary key column{plural} missing in projection. For foreign-key "
                    "table-table joins, the projection must include all primary key columns from "
                    f"the left input table (`{source.info.name}`). Missing column{plural}: "
                    f"{', '.join(f'`{each}`' for each in missing)}."
                )
        elif tree.viable:
            if not any(map(selection.contains, tree.viable)):
                raise missing_keys(self.sink_name, "join expression", tree.viable, all_needed=False)
        else:
            key = ex.Name(node.shape.key[0].name)
            if not selection.contains(key):
                raise missing_keys(
                    self.sink_name, "join expression", [key], all_needed=False, synthetic=True
                )

    def _transient(
        self, node: PlanNode, typed: list[tuple[str, TypedExpression]], *, keyless: bool = False
    ) -> QueryPlan:
        row = tuple(Column(name, each.type) for name, each in typed if each.type is not None)
        project = Project("Project", node, tuple(typed), replace(node.shape, row=row))
        return self._planned(project, keyless=keyless)

    def _planned(
        self, node: PlanNode, *, keyless: bool = False, ungrouped: str | None = None
    ) -> QueryPlan:
        shape = node.shape
        result = Result(Schema(shape.key, shape.row), shape.is_table, shape.window, keyless)
        sources = tuple(each.info.name for each in self._references.sources)
        return QueryPlan(node, result, sources, ungrouped)

    def _rules(self, node: PlanNode, grouping: tuple[ex.Expression, ...]) -> GroupRules:
        rules = GroupRules(
            self._functions, grouping, self._query.window is not None, expression_text
        )
        rules.check_grouping()
        return rules

    def _row_form(self, node: PlanNode, expression: ex.Expression) -> ex.Expression:
        """The expression with the names that columns have in rows."""
        if not self._references.is_join:
            return changed(
                expression,
                lambda each: replace(each, source=None) if isinstance(each, ex.Name) else None,
            )

        def change(each: ex.Expression) -> ex.Expression | None:
            if not isinstance(each, ex.Name):
                return None
            if each.source is None:
                return each
            return replace(each, name=joined_name(each.source, each.name), source=None)

        return changed(expression, change)

    def _aggregated(
        self,
        node: PlanNode,
        selection: Selection,
        grouping: tuple[ex.Expression, ...],
        having: ex.Expression | None,
    ) -> QueryPlan:
        grouped = bool(grouping)
        groups = tuple(self._row_form(node, each) for each in grouping or (ONE,))
        items = [
            replace(each, expression=self._row_form(node, each.expression))
            for each in self._expanded(node, selection)
        ]
        condition = None if having is None else self._row_form(node, having)
        expressions = [each.expression for each in items]
        used = expressions if condition is None else [*expressions, condition]
        rules = self._rules(node, groups)
        rules.check_select(expressions)
        if self._query.where is not None:
            where = self._qualified(self._query.where)
            assert where is not None
            rules.check_where(self._row_form(node, where))
        if condition is not None:
            rules.check_having(condition)
        calls = self._calls(node, used)
        if not calls.calls:
            raise StatementFailed(
                "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
            )
        self._check_undo(node, calls)
        aggregate, kept = self._aggregate(node, groups, items, calls, used)
        result: PlanNode = aggregate
        replaced = calls.replaced(used, len(kept))
        if condition is not None:
            scope = self._analyser(aggregate, replaced)
            result = Filter("Aggregate/HavingFilter", result, scope.condition(condition, "HAVING"))
        if self._persistent and grouped:
            missing = [each for each in grouping if not selection.contains(each)]
            if missing:
                raise missing_keys(self.sink_name, "grouping expression", grouping)
        analyser = self._analyser(result, replaced)
        typed = [(each.name, analyser.select_item(each.expression)) for each in items]
        ungrouped = None if grouped else next(iter(map(self._call_text, calls.calls)))
        return self._group_projected(result, aggregate, items, typed, ungrouped)

    def _call_text(self, call: ex.Call) -> str:
        return expression_text(call)

    def _group_projected(
        self,
        result: PlanNode,
        aggregate: Aggregate,
        items: Sequence[Selected],
        typed: list[tuple[str, TypedExpression]],
        ungrouped: str | None,
    ) -> QueryPlan:
        if self._query.emit is Emit.FINAL and self._query.window is None:
            raise StatementFailed("EMIT FINAL is only supported for windowed aggregations.")
        keys = {each.name for each in aggregate.shape.key}
        if not self._persistent:
            found = self._transient(result, typed)
            return replace(found, ungrouped=ungrouped)
        seen: set[str] = set()
        for name, each in typed:
            if name in seen:
                raise StatementFailed(
                    f"Duplicate value columns found in schema: `{name}` {each.type}"
                )
            seen.add(name)
        values = tuple(
            (name, each)
            for name, each in typed
            if name not in keys and not (name in BOUND_NAMES and isinstance(each, ColumnValue))
        )
        if not values:
            raise StatementFailed(NO_VALUES)
        shape = Shape(
            aggregate.shape.key,
            tuple(Column(name, each.type) for name, each in values if each.type is not None),
            is_table=True,
            window=aggregate.shape.window,
        )
        project = Project("Aggregate/Project", result, values, shape)
        return self._planned(project, ungrouped=ungrouped)

    def _calls(self, node: PlanNode, used: Sequence[ex.Expression]) -> AggregateCalls:
        source = self._references.sources[0]
        name = ROWTIME.name
        rowtime = ex.Name(joined_name(source.alias, name) if self._references.is_join else name)
        calls = AggregateCalls(
            self._analyser(node),
            self._functions,
            rowtime,
            internal_value_format(source.info),
            self._settings,
        )
        for each in used:
            calls.collect(each)
        return calls

    def _check_undo(self, node: PlanNode, calls: AggregateCalls) -> None:
        if not node.shape.is_table:
            return
        if self._query.window is not None:
            raise StatementFailed("WINDOW clause is only supported on streams, not on tables.")
        wrong = {call.function for call, made in calls.calls.items() if not made.function.undoable}
        if wrong:
            raise StatementFailed(
                f"The aggregation function(s) ({', '.join(sorted(wrong))}) cannot be applied to a "
                "table source, only to a stream source."
            )

    def _aggregate(
        self,
        node: PlanNode,
        groups: tuple[ex.Expression, ...],
        items: Sequence[Selected],
        calls: AggregateCalls,
        used: Sequence[ex.Expression],
    ) -> tuple[Aggregate, list[tuple[ex.Name, ColumnValue]]]:
        analyser = self._analyser(node)
        typed = tuple(map(analyser.typed, groups))
        keys = self._group_columns(node, groups, items, typed)
        scope = RowScope(node.shape, is_join=self._references.is_join)
        kept = kept_columns(used, scope, self._functions)
        window = self._query.window
        bounds = WINDOW_BOUNDS if window is not None else ()
        info: WindowInfo | None = node.shape.window if window is None else window_info(window)
        row = (
            *(Column(value.name, value.type) for _, value in kept),
            *(each.column for each in calls.calls.values()),
            *bounds,
        )
        source = self._references.sources[0].info
        names = [each.name if isinstance(each, ColumnValue) else None for each in typed]
        by_key = not node.shape.is_table and names == [each.name for each in node.shape.key]
        key_format = internal_key_format(source.key_format, keys, self._default_key_format)
        aggregate = Aggregate(
            "Aggregate",
            node,
            typed,
            tuple(value for _, value in kept),
            tuple(calls.calls.values()),
            key_format,
            internal_value_format(source),
            Shape(keys, row, is_table=True, window=info),
            None if window is None else window_spec(window),
            by_key=by_key,
            final=self._query.emit is Emit.FINAL,
        )
        return aggregate, kept

    def _group_columns(
        self,
        node: PlanNode,
        groups: Sequence[ex.Expression],
        items: Sequence[Selected],
        typed: Sequence[TypedExpression],
    ) -> tuple[Column, ...]:
        aliases = Aliases(each.name for each in node.shape.row)
        found: list[Column] = []
        for group, value in zip(groups, typed, strict=True):
            names = [each.name for each in items if each.expression == group]
            if len(names) > 1:
                raise StatementFailed(
                    f"The projection contains a key column more than once: {' and '.join(names)}.\n"
                    "Each key column must only be in the projection once. If you intended to copy "
                    "the key into the value, then consider using the AS_VALUE function to indicate "
                    "which key reference should be copied."
                )
            if names:
                name = names[0]
            else:
                name = group.name if isinstance(group, ex.Name) else aliases.of(group)
            if value.type is None:
                raise StatementFailed("a query cannot be grouped by NULL")
            found.append(Column(name, value.type))
        return tuple(found)


def _rekeyed_star(step: Rekey) -> list[Selected]:
    """The new key first, then the rest of the row without times and offsets."""
    pseudo = {"ROWTIME", "ROWPARTITION", "ROWOFFSET"}
    keys = [each.name for each in step.shape.key]
    rest = [each.name for each in step.shape.row if each.name not in keys]
    bounds = [each for each in rest if each in BOUND_NAMES]
    others = [each for each in rest if each not in BOUND_NAMES and each not in pseudo]
    return [Selected(each, ex.Name(each), from_star=True) for each in (*keys, *bounds, *others)]


def _split(
    shape: Shape, typed: Sequence[tuple[str, TypedExpression]]
) -> tuple[tuple[Column, ...], tuple[tuple[str, TypedExpression], ...]]:
    """The key under its new names, and everything else."""
    names: dict[str, list[str]] = {each.name: [] for each in shape.key}
    values: list[tuple[str, TypedExpression]] = []
    for name, value in typed:
        if isinstance(value, ColumnValue):
            if value.name in BOUND_NAMES and name == value.name:
                continue
            if value.name in names:
                names[value.name].append(name)
                continue
        values.append((name, value))
    for column, aliases in names.items():
        if len(set(aliases)) > 1:
            raise repeated_key(column, aliases)
    key = tuple(Column(names[each.name][0], each.type) for each in shape.key if names[each.name])
    return key, tuple(values)


__all__ = ["QueryPlan", "QueryPlanner", "with_argument"]
