"""FROM: scans and joins, as steps of the plan."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sql.analyse.expression_text import expression_text
from sql.analyse.expressions import ExpressionAnalyser
from sql.catalog import Catalog, FormatInfo, SourceInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.expressions import TypedExpression
from sql.formats import check_format, key_wrapping
from sql.functions.registry import FunctionRegistry
from sql.plan import (
    ForeignKeyJoin,
    PlanNode,
    Rekey,
    Scan,
    Shape,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
)
from sql.planner.aliases import Aliases, joined_name
from sql.planner.join_tree import JoinInput, JoinTree, is_table
from sql.planner.references import FromSource, RowScope
from sql.properties import duration_ms
from sql.syntax import expressions as ex
from sql.syntax.statements import SourceKind

KAFKA_LIMITS = (
    "The KAFKA format is primarily intended for use as a key format. It can be used as a value "
    "format, but can not be used in any operation that requires a repartition or changelog topic."
)
NO_WINDOWED_REKEY = (
    "Implicit repartitioning of windowed sources is not supported. "
    "See https://github.com/confluentinc/ksql/issues/4385."
)


def scan(source: FromSource, name: str, *, materialized: bool = False) -> Scan:
    """The rows of a source."""
    info = source.info
    return Scan(
        name,
        info.name,
        info.topic,
        Shape(info.schema.key, source.row, info.kind is SourceKind.TABLE, info.window),
        info.schema.value,
        info.key_format,
        info.value_format,
        info.schema.headers,
        info.timestamp,
        materialized,
    )


def from_sources(names: list[tuple[str, str]], catalog: Catalog) -> list[FromSource]:
    """The sources of FROM; their names and aliases must be unique."""
    result: list[FromSource] = []
    for name, alias in names:
        source = catalog.sources.get(name)
        if source is None:
            raise unknown_source(name, catalog)
        if any(each.info.name == name for each in result):
            if len(result) > 1:
                raise StatementFailed(
                    "N-way joins do not support multiple occurrences of the same source. "
                    f"Source: '{name}'."
                )
            raise StatementFailed(
                f"Can not join '{name}' to '{name}': self joins are not yet supported."
            )
        result.append(FromSource(alias, source))
    return result


def unknown_source(name: str, catalog: Catalog, *, place: str | None = None) -> StatementFailed:
    """The error for an unknown source; suggests names that differ in case."""
    what = (
        f"Exception while preparing statement: {name} does not exist."
        if place is None
        else f"{place}Source `{name}` does not exist."
    )
    alike = [each for each in catalog.sources if each.upper() == name.upper()]
    more = ""
    if alike:
        more = (
            f'\nDid you mean "{alike[0]}"? Hint: wrap the source name in double quotes to make it '
            "case-sensitive."
        )
    return StatementFailed(f"{what}{more}")


def check_kafka_values(sources: list[FromSource], what: str) -> None:
    """Refuse the KAFKA format for values where a step needs an internal topic."""
    found = [each.alias for each in sources if each.info.value_format.name == "KAFKA"]
    if found:
        raise StatementFailed(
            f"Source(s) {', '.join(found)} are using the 'KAFKA' value format. This format does "
            f"not yet support {what}.\n{KAFKA_LIMITS}"
        )


@dataclass(frozen=True, slots=True)
class JoinPlanner:
    """Creates the steps of a join tree."""

    functions: FunctionRegistry
    catalog: Catalog
    # Whether the projection has a column; of several candidates, that one becomes the key.
    is_selected: Callable[[ex.Expression], bool]

    def plan(self, tree: JoinTree, prefix: str = "") -> PlanNode:
        """The steps of a join; `prefix` distinguishes nested joins."""
        left = self._side(tree.left, prefix, "Left")
        right = self._side(tree.right, prefix, "Right")
        _check_partitions(tree)
        row = (*_prefixed(tree.left, left), *_prefixed(tree.right, right))
        if tree.is_foreign:
            return self._foreign(tree, left, right, row, prefix)
        key_type = left.shape.key[0].type
        self._check_types(tree, left, right)
        viable = next(filter(self.is_selected, tree.viable), None)
        if viable is None and tree.viable:
            viable = tree.viable[0]
        if isinstance(viable, ex.Name):
            assert viable.source is not None
            key = Column(joined_name(viable.source, viable.name), key_type)
        else:
            used = (column.name for each in tree.sources for column in each.info.schema.columns)
            key = Column(Aliases(used).synthetic_key(), key_type)
            row = (*row, key)
        shape = Shape((key,), row, tree.is_table, left.shape.window)
        check_format(FormatInfo("JSON"), shape.key, is_key=True)
        return self._joined(tree, (left, right), shape, f"{prefix}Join")

    def _side(self, side: JoinInput, prefix: str, which: str) -> PlanNode:
        if isinstance(side.tree, JoinTree):
            node = self.plan(side.tree, f"{prefix}L_")
        else:
            node = scan(side.tree, f"KafkaTopic_{prefix}{which}/Source")
        if side.rekeyed is None:
            return node
        if node.shape.window is not None:
            raise StatementFailed(NO_WINDOWED_REKEY)
        scope = RowScope(node.shape, is_join=isinstance(side.tree, JoinTree), clause="JOIN ON")
        analyser = ExpressionAnalyser(scope, self.functions, self.catalog.types)
        return rekeyed(
            node,
            [(side.on, analyser.typed(side.on))],
            f"{prefix}{which}SourceKeyed",
            (side.rekeyed, _value_format(side.tree)),
        )

    def _check_types(self, tree: JoinTree, left: PlanNode, right: PlanNode) -> None:
        first, second = left.shape.key[0].type, right.shape.key[0].type
        if first == second:
            return
        if not tree.is_table:
            raise StatementFailed(f"Invalid join. Key types differ: {first} vs {second}")
        raise self._mismatch(tree, str(first), str(second))

    def _mismatch(self, tree: JoinTree, left: str, right: str) -> StatementFailed:
        types = {tree.criterion.left: left, tree.criterion.right: right}
        first, second = tree.criterion.text
        return StatementFailed(
            "Invalid join condition: types don't match. Got "
            f"{expression_text(first)}{{{types[first]}}} = "
            f"{expression_text(second)}{{{types[second]}}}."
        )

    def _foreign(
        self, tree: JoinTree, left: PlanNode, right: PlanNode, row: tuple[Column, ...], prefix: str
    ) -> PlanNode:
        source = tree.left.tree
        assert not isinstance(source, JoinTree)
        if tree.within is not None:
            raise StatementFailed(_no_window("Table-Table"))
        scope = RowScope(left.shape, is_join=False, clause="JOIN ON")
        analyser = ExpressionAnalyser(scope, self.functions, self.catalog.types)
        key = analyser.typed(tree.criterion.left)
        if key.type != right.shape.key[0].type:
            raise self._mismatch(tree, str(key.type), str(right.shape.key[0].type))
        if right.shape.window is not None:
            raise StatementFailed(
                "Foreign-key table-table joins are not supported on windowed tables."
            )
        keys = tuple(
            Column(joined_name(source.alias, each.name), each.type) for each in left.shape.key
        )
        formats = (source.info.key_format, source.info.value_format)
        shape = Shape(keys, row, is_table=True)
        return ForeignKeyJoin(f"{prefix}Join", tree.kind, left, right, key, formats, shape)

    def _joined(
        self, tree: JoinTree, sides: tuple[PlanNode, PlanNode], shape: Shape, name: str
    ) -> PlanNode:
        left, right = sides
        preferred = tree.left.rekeyed or tree.right.rekeyed
        resolved = tree.preferred()
        key = preferred or (resolved[0] if resolved else FormatInfo(tree.default_key_format))
        left_formats = (key, _value_format(tree.left.tree))
        if tree.is_table:
            if tree.within is not None:
                raise StatementFailed(_no_window("Table-Table"))
            return TableJoin(name, tree.kind, left, right, shape)
        if is_table(tree.right.tree):
            if tree.within is not None:
                raise StatementFailed(_no_window("Stream-Table"))
            return StreamTableJoin(name, tree.kind, left, right, left_formats, shape)
        if tree.within is None:
            raise StatementFailed(
                "Stream-Stream joins must have a WITHIN clause specified. None was provided. To "
                "learn about how to specify a WITHIN clause with a stream-stream join, please "
                "visit: https://docs.confluent.io/current/ksql/docs/syntax-reference.html"
                "#create-stream-as-select"
            )
        within = tree.within
        grace = within.grace
        return StreamJoin(
            name,
            tree.kind,
            left,
            right,
            duration_ms(within.before.count, within.before.unit),
            duration_ms(within.after.count, within.after.unit),
            None if grace is None else duration_ms(grace.count, grace.unit),
            left_formats,
            (key, _value_format(tree.right.tree)),
            shape,
        )


def rekeyed(
    node: PlanNode,
    keys: list[tuple[ex.Expression, TypedExpression]],
    name: str,
    formats: tuple[FormatInfo, FormatInfo],
) -> Rekey:
    """Rows with another key."""
    columns = new_key(node, keys)
    # A key with expressions that are not columns of the row is added to the row completely.
    added = [] if all(isinstance(each, ex.Name) for each, _ in keys) else columns
    key_format = replace(formats[0], wrapped=key_wrapping(formats[0].name, len(columns)))
    shape = replace(node.shape, key=tuple(columns), row=(*node.shape.row, *added))
    expressions = tuple(each for _, each in keys)
    return Rekey(name, node, expressions, key_format, formats[1], shape)


def new_key(node: PlanNode, keys: list[tuple[ex.Expression, TypedExpression]]) -> list[Column]:
    """The columns of a new key: columns of the row keep their names, others get new ones."""
    aliases = Aliases(each.name for each in (*node.shape.key, *node.shape.row))
    columns = []
    for expression, typed in keys:
        if typed.type is None:
            raise StatementFailed("a key cannot be NULL without a type")
        if isinstance(expression, ex.Name):
            columns.append(Column(getattr(typed, "name", expression.name), typed.type))
        else:
            columns.append(Column(aliases.of(expression), typed.type))
    return columns


def _prefixed(side: JoinInput, node: PlanNode) -> tuple[Column, ...]:
    if isinstance(side.tree, JoinTree):
        return node.shape.row
    alias = side.tree.alias
    return tuple(Column(joined_name(alias, each.name), each.type) for each in node.shape.row)


def _value_format(tree: FromSource | JoinTree) -> FormatInfo:
    """The format of values between steps: the left-most source's, without its own properties."""
    info: SourceInfo = tree.sources[0].info if isinstance(tree, JoinTree) else tree.info
    return internal_value_format(info)


def internal_value_format(info: SourceInfo) -> FormatInfo:
    """The format of values between steps: the source's, but always wrapped."""
    return FormatInfo(
        info.value_format.name,
        delimiter=info.value_format.delimiter,
        nullable=info.value_format.nullable,
    )


def _no_window(kind: str) -> str:
    return (
        f"A window definition was provided for a {kind} join. These joins are not windowed. "
        "Please drop the window definition (ie. the WITHIN clause) and try to execute your join "
        "again."
    )


def _check_partitions(tree: JoinTree) -> None:
    if tree.is_foreign:
        return
    left = tree.left.tree.sources[-1] if isinstance(tree.left.tree, JoinTree) else tree.left.tree
    right = tree.right.tree
    assert isinstance(right, FromSource)
    first, second = left.info.partitions, right.info.partitions
    if first is None or second is None or first == second:
        return
    shown = tree.sources[0].alias
    raise StatementFailed(
        f"Can't join `{shown}` with `{right.alias}` since the number of partitions don't match. "
        f"`{shown}` partitions = {first}; `{right.alias}` partitions = {second}. Please "
        "repartition either one so that the number of partitions match."
    )
