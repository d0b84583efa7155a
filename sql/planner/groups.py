"""GROUP BY: the aggregation of a query, its HAVING and its projection."""

from collections.abc import Sequence
from dataclasses import replace

from sql.analyse.expression_text import expression_text
from sql.analyse.trees import walk
from sql.catalog import WindowInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.expressions import ColumnValue, TypedExpression
from sql.plan import Aggregate, Filter, PlanNode, Project, Shape
from sql.planner.aggregation import AggregateCalls, GroupRules, aggregates_in
from sql.planner.aliases import Aliases, joined_name
from sql.planner.context import QueryContext, QueryPlan, Typed, columns
from sql.planner.join_tree import JoinTree
from sql.planner.references import BOUND_NAMES
from sql.planner.relations import internal_value_format
from sql.planner.selection import NO_VALUES, Selected, Selection, in_words, missing_keys
from sql.planner.stars import expanded
from sql.planner.windows import internal_key_format, window_info, window_spec
from sql.schema import ROWTIME, WINDOW_BOUNDS
from sql.syntax import expressions as ex
from sql.syntax.queries import EmitClause

# Without a GROUP BY, aggregates have a single group.
ONE = ex.IntegerLiteral(1)


class Grouping:
    """Plans the aggregation of one query."""

    def __init__(
        self,
        context: QueryContext,
        selection: Selection,
        tree: JoinTree | None,
        grouping: Sequence[ex.Expression],
    ) -> None:
        """`grouping` is the GROUP BY clause; empty if there are only aggregates."""
        self._context = context
        self._selection = selection
        self._tree = tree
        self._is_grouped = bool(grouping)
        self._groups = tuple(context.row_form(each) for each in grouping or (ONE,))
        if len(set(self._groups)) < len(self._groups):
            repeated = next(each for each in grouping if grouping.count(each) > 1)
            raise StatementFailed(f"Duplicate GROUP BY expression: {expression_text(repeated)}")

    def check_where(self, where: ex.Expression) -> None:
        """Refuse bounds of windows, which the rows do not have before the aggregation."""
        self._rules().check_where(self._context.row_form(where))

    def plan(self, node: PlanNode, having: ex.Expression | None) -> QueryPlan:
        """The aggregation of a step's rows, and its projection."""
        context = self._context
        items = [
            replace(each, expression=context.row_form(each.expression))
            for each in expanded(self._selection, node, context.references, self._tree)
        ]
        condition = None if having is None else context.row_form(having)
        conditions = [] if condition is None else [condition]
        used = [*(each.expression for each in items), *conditions]
        self._check(items, condition, used)
        calls = self._calls(node, used)
        self._check_undo(node, calls)
        aggregate = self._aggregate(node, items, calls)
        replaced = {**self._key_values(aggregate), **calls.replaced(used)}
        result: PlanNode = aggregate
        if condition is not None:
            typed = context.analyser(aggregate, replaced).condition(condition, "HAVING")
            result = Filter("Aggregate/HavingFilter", result, typed)
        self._check_keys()
        analyser = context.analyser(result, replaced)
        selected = [
            (each.name, analyser.select_item(each.expression)) for each in self._shown(items)
        ]
        return self._projected(result, aggregate, selected)

    def _key_values(self, aggregate: Aggregate) -> dict[ex.Expression, ColumnValue]:
        """GROUP BY expressions are columns of the key, wherever they are used."""
        if not self._is_grouped:
            return {}
        start = len(aggregate.shape.row) - len(self._groups)
        return {
            group: ColumnValue(start + place, column.name, column.type)
            for place, (group, column) in enumerate(
                zip(self._groups, aggregate.shape.key, strict=True)
            )
        }

    def _shown(self, items: Sequence[Selected]) -> Sequence[Selected]:
        """The columns of the projection; key columns are not in the values of a topic."""
        if self._context.destination is None:
            return items
        return [each for each in items if each.expression not in self._groups]

    def _rules(self) -> GroupRules:
        is_windowed = self._context.query.window is not None
        rules = GroupRules(self._context.functions, self._groups, is_windowed, expression_text)
        rules.check_grouping()
        return rules

    def _check(
        self,
        items: Sequence[Selected],
        condition: ex.Expression | None,
        used: Sequence[ex.Expression],
    ) -> None:
        functions = self._context.functions
        for expression in used:
            for node in walk(expression):
                if isinstance(node, ex.Call):
                    functions.get(node.function)
        rules = self._rules()
        if not any(True for each in used for _ in aggregates_in(each, functions)):
            raise StatementFailed(
                "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
            )
        rules.check_select([each.expression for each in items])
        if condition is not None:
            rules.check_having(condition)
        query, destination = self._context.query, self._context.destination
        if query.emit is EmitClause.FINAL and query.window is None:
            raise StatementFailed("EMIT FINAL is only supported for windowed aggregations.")
        if destination is not None and not self._is_grouped:
            call = next(call for each in used for call in aggregates_in(each, functions))
            shown = call if call.arguments else ex.Call(call.function, (ex.Name(ROWTIME.name),))
            if shown.arguments == (ex.Star(),):
                shown = ex.Call(call.function, (ex.Name(ROWTIME.name),))
            raise StatementFailed(
                f"{destination.statement} statement does not support aggregate function "
                f"[{expression_text(shown)}] without a GROUP BY clause."
            )

    def _check_keys(self) -> None:
        destination = self._context.destination
        if destination is None:
            return
        grouping = [self._context.references.qualified(e) for e in self._context.query.group_by]
        if not all(map(self._selection.contains, grouping)):
            raise missing_keys(destination.name, "grouping expression", self._groups)

    def _projected(
        self, result: PlanNode, aggregate: Aggregate, selected: Sequence[Typed]
    ) -> QueryPlan:
        if self._context.destination is None:
            return self._context.shown(result, selected)
        seen = {each.name for each in aggregate.shape.key}
        for name, each in selected:
            if name in seen:
                raise StatementFailed(
                    f"Duplicate value columns found in schema: `{name}` {each.type}"
                )
            seen.add(name)
        values = tuple(
            (name, each)
            for name, each in selected
            if not (name in BOUND_NAMES and isinstance(each, ColumnValue))
        )
        if not values:
            raise StatementFailed(NO_VALUES)
        shape = Shape(
            aggregate.shape.key, columns(values), is_table=True, window=aggregate.shape.window
        )
        return self._context.planned(Project("Aggregate/Project", result, values, shape))

    def _calls(self, node: PlanNode, used: Sequence[ex.Expression]) -> AggregateCalls:
        context = self._context
        source, name = context.references.sources[0], ROWTIME.name
        rowtime = ex.Name(joined_name(source.alias, name) if self._tree is not None else name)
        calls = AggregateCalls(
            context.analyser(node),
            context.functions,
            rowtime,
            internal_value_format(source.info),
            context.settings,
        )
        for each in used:
            calls.collect(each)
        return calls

    def _check_undo(self, node: PlanNode, calls: AggregateCalls) -> None:
        if not node.shape.is_table:
            return
        if self._context.query.window is not None:
            raise StatementFailed("WINDOW clause is only supported on streams, not on tables.")
        wrong = [call.function for call, made in calls.calls.items() if not made.function.undoable]
        if wrong:
            names = list(dict.fromkeys(wrong))
            raise StatementFailed(
                f"The aggregation function{'s' if len(names) > 1 else ''} {in_words(names, 'and')} "
                "cannot be applied to a table source, only to a stream source."
            )

    def _aggregate(
        self, node: PlanNode, items: Sequence[Selected], calls: AggregateCalls
    ) -> Aggregate:
        context = self._context
        analyser = context.analyser(node)
        typed = tuple(map(analyser.typed, self._groups))
        keys = self._key_columns(node, items, typed)
        window = context.query.window
        info: WindowInfo | None = None if window is None else window_info(window)
        row = (
            *(each.column for each in calls.calls.values()),
            *(WINDOW_BOUNDS if window is not None else ()),
            *keys,
        )
        names = [each.name if isinstance(each, ColumnValue) else None for each in typed]
        # The window of a source's key is not part of the group.
        is_plain = not node.shape.is_table and node.shape.window is None
        by_key = is_plain and names == [each.name for each in node.shape.key]
        return Aggregate(
            "Aggregate",
            node,
            typed,
            tuple(calls.calls.values()),
            internal_key_format(context.left.key_format, keys, context.default_key_format),
            internal_value_format(context.left),
            Shape(keys, row, is_table=True, window=info),
            None if window is None else window_spec(window),
            by_key=by_key,
            final=context.query.emit is EmitClause.FINAL,
        )

    def _key_columns(
        self, node: PlanNode, items: Sequence[Selected], typed: Sequence[TypedExpression]
    ) -> tuple[Column, ...]:
        """The columns of the key, with their aliases or their own names."""
        aliases = Aliases(each.name for each in node.shape.row)
        found: list[Column] = []
        for group, value in zip(self._groups, typed, strict=True):
            names = [each.name for each in items if each.expression == group]
            if len(names) > 1 and self._context.destination is not None:
                shown = in_words([f"`{each}`" for each in names], "and")
                raise StatementFailed(
                    f"The projection contains a key column more than once: {shown}.\n"
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
