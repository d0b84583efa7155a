"""The projection of a query without GROUP BY."""

from collections.abc import Mapping, Sequence

from sql.analyse.expressions import converted
from sql.analyse.sources import check_timestamp
from sql.datatypes import Column, DecimalType
from sql.errors import StatementFailed
from sql.expressions import ColumnValue, TypedExpression
from sql.plan import PlanNode, Project, Rekey, Shape
from sql.planner.context import Destination, QueryContext, QueryPlan, Typed, columns
from sql.planner.join_tree import JoinTree
from sql.planner.references import BOUND_NAMES
from sql.planner.selection import NO_VALUES, Selected, Selection, missing_keys, repeated_key
from sql.planner.stars import expanded, keying_step
from sql.syntax import expressions as ex
from sql.syntax.queries import EmitClause

NUMBERS = (ex.IntegerLiteral, ex.DecimalLiteral, ex.DoubleLiteral)


class Projection:
    """Plans the projection of one query."""

    def __init__(
        self,
        context: QueryContext,
        selection: Selection,
        tree: JoinTree | None,
        partitioning: Sequence[ex.Expression],
    ) -> None:
        """`partitioning` is the PARTITION BY clause."""
        self._context = context
        self._selection = selection
        self._tree = tree
        self._partitioning = tuple(partitioning)

    def plan(self, node: PlanNode, replaced: Mapping[ex.Expression, ColumnValue]) -> QueryPlan:
        """The projection of a step's rows; `replaced` are the results of table functions."""
        self._check_clauses()
        analyser = self._context.analyser(node, {**replaced, **self._key_values(node)})
        items = expanded(self._selection, node, self._context.references, self._tree)
        typed = [
            (item.name, self._fitted(place, analyser.select_item(item.expression), item))
            for place, item in enumerate(items)
        ]
        keyless = any(isinstance(each, ex.Null) for each in self._partitioning)
        destination = self._context.destination
        if destination is None:
            return self._context.shown(node, typed, keyless=keyless)
        key, values = split_key(node.shape, typed)
        if not values:
            raise StatementFailed(NO_VALUES)
        check_timestamp((*key, *columns(values)), destination.timestamp)
        self._check_keys(node, destination)
        shape = Shape(key, columns(values), node.shape.is_table, node.shape.window)
        return self._context.planned(Project("Project", node, values, shape), keyless=keyless)

    def _check_clauses(self) -> None:
        query = self._context.query
        if query.window is not None:
            place = query.window.position
            where = f"Line: {place.line}, Col: {place.column}: " if place.line else ""
            raise StatementFailed(f"{where}WINDOW clause requires a GROUP BY clause.")
        if query.emit is EmitClause.FINAL:
            raise StatementFailed("EMIT FINAL is only supported for windowed aggregations.")
        if query.having is not None:
            raise StatementFailed("HAVING requires a GROUP BY clause.")

    def _key_values(self, node: PlanNode) -> dict[ex.Expression, ColumnValue]:
        """Selected PARTITION BY expressions become columns of the key."""
        step = keying_step(node)
        if not isinstance(step, Rekey) or not self._partitioning or not step.shape.key:
            return {}
        places = {each.name: n for n, each in enumerate(step.shape.row)}
        return {
            expression: ColumnValue(places[column.name], column.name, column.type)
            for expression, column in zip(self._partitioning, step.shape.key, strict=True)
        }

    def _fitted(self, place: int, typed: TypedExpression, item: Selected) -> TypedExpression:
        """Numbers that INSERT INTO writes into a decimal column are converted to its type."""
        destination = self._context.destination
        if destination is None or destination.target is None:
            return typed
        wanted = destination.target.schema.columns
        if place >= len(wanted) or not isinstance(item.expression, NUMBERS):
            return typed
        type_ = wanted[place].type
        return converted(typed, type_) if isinstance(type_, DecimalType) else typed

    def _check_keys(self, node: PlanNode, destination: Destination) -> None:
        contains, sink = self._selection.contains, destination.name
        if self._partitioning:
            keyless = isinstance(self._partitioning[0], ex.Null)
            if not keyless and not all(map(contains, self._partitioning)):
                raise missing_keys(sink, "partitioning expression", self._partitioning)
            return
        if self._tree is not None:
            self._check_join_key(node, sink, self._tree)
            return
        source = self._context.references.sources[0]
        keys = [ex.Name(each.name, source.alias) for each in source.info.schema.key]
        if not all(map(contains, keys)):
            raise missing_keys(sink, "key column", [ex.Name(each.name) for each in keys])

    def _check_join_key(self, node: PlanNode, sink: str, tree: JoinTree) -> None:
        contains = self._selection.contains
        if tree.is_foreign:
            self._check_left_key()
        elif tree.viable:
            if not any(map(contains, tree.viable)):
                raise missing_keys(sink, "join expression", tree.viable, all_needed=False)
        else:
            key = ex.Name(node.shape.key[0].name)
            if not contains(key):
                raise missing_keys(sink, "join expression", [key], all_needed=False, synthetic=True)

    def _check_left_key(self) -> None:
        source = self._context.references.sources[0]
        missing = [
            each.name
            for each in source.info.schema.key
            if not self._selection.contains(ex.Name(each.name, source.alias))
        ]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise StatementFailed(
                f"Primary key column{plural} missing in projection. For foreign-key table-table "
                "joins, the projection must include all primary key columns from the left input "
                f"table (`{source.info.name}`). Missing column{plural}: "
                f"{', '.join(f'`{each}`' for each in missing)}."
            )


def split_key(shape: Shape, typed: Sequence[Typed]) -> tuple[tuple[Column, ...], tuple[Typed, ...]]:
    """The key with its new names, and the other columns."""
    names: dict[str, list[str]] = {each.name: [] for each in shape.key}
    values: list[Typed] = []
    for name, value in typed:
        if isinstance(value, ColumnValue):
            if value.name in BOUND_NAMES and name == value.name:
                # The bounds of a windowed source stay in its key.
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
