"""Join tree: the order of joins, their criteria, and the common format of their keys.

Joins are left-deep, in the order of the statement: the left side of a join is everything before it.
Both sides need keys in the same format, so that equal keys are equal bytes in the same partition. A
side with another key, or with its key in another format, is rekeyed.
"""

from dataclasses import dataclass, field

from sql.analyse.expression_text import expression_text
from sql.catalog import FormatInfo, WindowInfo
from sql.errors import StatementFailed
from sql.formats import abilities
from sql.planner.references import FromSource, References
from sql.syntax import expressions as ex
from sql.syntax.queries import Join, JoinKind, Query, Within
from sql.syntax.statements import SourceKind

KIND_TEXTS = {
    JoinKind.INNER: "[INNER] JOIN",
    JoinKind.LEFT: "LEFT [OUTER] JOIN",
    JoinKind.RIGHT: "RIGHT [OUTER] JOIN",
    JoinKind.OUTER: "[FULL] OUTER JOIN",
}

KeyFormat = tuple[FormatInfo, WindowInfo | None]


@dataclass(frozen=True, slots=True)
class Criterion:
    """ON left = right; the left expression belongs to an earlier source."""

    left: ex.Expression
    right: ex.Expression
    text: tuple[ex.Expression, ex.Expression]  # as written

    @property
    def shown(self) -> str:
        """As in errors."""
        return f"{expression_text(self.text[0])} = {expression_text(self.text[1])}"


@dataclass(slots=True)
class JoinInput:
    """One side of a join: a source or the previous joins, and whether it is rekeyed."""

    tree: "FromSource | JoinTree"
    on: ex.Expression
    may_rekey: bool
    # The key format of its repartition topic; None if it is not rekeyed.
    rekeyed: FormatInfo | None = None

    def needs_rekey(self) -> bool:
        """Whether its key differs from the expression of the join."""
        return self.may_rekey and self.on not in key_of(self.tree)

    def preferred(self) -> KeyFormat | None:
        """The format of its key, if it does not need to be rekeyed."""
        if self.needs_rekey():
            return None
        if isinstance(self.tree, JoinTree):
            return self.tree.preferred()
        return self.tree.info.key_format, self.tree.info.window

    def set_format(self, wanted: KeyFormat) -> None:
        """Use the format of the join's key."""
        # The registered schemas of equal keys may differ, and then their bytes differ, too.
        forced = self.may_rekey and abilities(wanted[0].name).inferred
        if forced and wanted[1] is not None and not self.needs_rekey():
            return
        if self.needs_rekey() or forced:
            self.rekeyed = wanted[0]
            if isinstance(self.tree, JoinTree):
                self.tree.resolve()
        elif isinstance(self.tree, JoinTree):
            preferred = self.tree.preferred()
            if not self.may_rekey or preferred is None or preferred == wanted:
                self.tree.set_format(wanted)
            else:
                self.rekeyed = wanted[0]
                self.tree.resolve()
        elif self.may_rekey and wanted != (self.tree.info.key_format, self.tree.info.window):
            self.rekeyed = wanted[0]


@dataclass(slots=True)
class JoinTree:
    """A join of all previous sources with one more."""

    kind: JoinKind
    criterion: Criterion
    within: Within | None
    left: JoinInput
    right: JoinInput
    is_foreign: bool
    default_key_format: str
    # Expressions that are equal to the key of the result.
    equivalent: frozenset[ex.Expression] = frozenset()
    # Columns that are equal to the key of the result, by their possible names in the projection.
    viable: tuple[ex.Name, ...] = ()
    sources: tuple[FromSource, ...] = field(default=())

    @property
    def is_table(self) -> bool:
        """Whether the result is a table."""
        return is_table(self.left.tree) and is_table(self.right.tree)

    @property
    def has_synthetic_key(self) -> bool:
        """Whether no column of a source is equal to the key of the result."""
        return not self.viable and not self.is_foreign

    def preferred(self) -> KeyFormat | None:
        """The existing key formats of the sides."""
        return self.left.preferred() or self.right.preferred()

    def resolve(self) -> None:
        """Choose the format of the join's key."""
        preferred = self.preferred()
        if preferred is None:
            preferred = next(
                (
                    (each.info.key_format, each.info.window)
                    for each in self.sources
                    if each.info.key_format.name != "NONE"
                ),
                (FormatInfo(self.default_key_format), None),
            )
        self.set_format(preferred)

    def set_format(self, wanted: KeyFormat) -> None:
        """Set the format of the key."""
        self.left.set_format(wanted)
        self.right.set_format(wanted)


def is_table(tree: "FromSource | JoinTree") -> bool:
    """Whether its rows are those of a table."""
    if isinstance(tree, JoinTree):
        return tree.is_table
    return tree.info.kind is SourceKind.TABLE


def key_of(tree: "FromSource | JoinTree") -> frozenset[ex.Expression]:
    """The expressions that are equal to the key; none if it has several columns."""
    if isinstance(tree, JoinTree):
        if tree.is_foreign:
            return key_of(tree.left.tree)
        return tree.equivalent
    keys = tree.info.schema.key
    return frozenset({ex.Name(keys[0].name, tree.alias)}) if len(keys) == 1 else frozenset()


def join_tree(query: Query, references: References, default_key_format: str) -> JoinTree:
    """The joins of a query, validated."""
    first = references.source(query.source.alias)
    tree: FromSource | JoinTree = first
    joined = [first]
    for join in query.joins:
        source = references.source(join.right.alias)
        criterion = _criterion(join, source, references, joined)
        tree = _joined(tree, source, join, criterion, default_key_format)
        joined.append(source)
    assert isinstance(tree, JoinTree)
    tree.resolve()
    return tree


def _criterion(
    join: Join, source: FromSource, references: References, joined: list[FromSource]
) -> Criterion:
    on = references.qualified(join.on)
    comparison = _equality(on)
    for side in (comparison.left, comparison.right):
        references.check(side, "JOIN ON")
    left = _only_source(comparison.left, comparison, references)
    right = _only_source(comparison.right, comparison, references)
    if left is right:
        raise StatementFailed(
            "Each side of the join must reference exactly one source and not the same source. "
            f"Left side references `{left.alias}` and right references `{right.alias}`"
        )
    check_windows(left, right)
    if source not in (left, right):
        raise StatementFailed(
            f"A join criteria is expected to reference the source (`{source.alias}`) in the FROM "
            f"clause, instead the right source references `{right.alias}` and the left source "
            f"references `{left.alias}`"
        )
    text = (comparison.left, comparison.right)
    other = right if left is source else left
    if other not in joined:
        raise StatementFailed(
            "Cannot build JOIN tree; neither source in the join is the FROM source or included in "
            f"a previous JOIN: {expression_text(on)}"
        )
    if left is source:
        return Criterion(comparison.right, comparison.left, text)
    return Criterion(comparison.left, comparison.right, text)


def _equality(on: ex.Expression) -> ex.Comparison:
    if not isinstance(on, ex.Comparison):
        if isinstance(on, ex.Logical) and all(
            isinstance(each, ex.Comparison) and each.operator == "=" for each in (on.left, on.right)
        ):
            raise StatementFailed(
                "Invalid join condition: joins on multiple conditions are not yet supported. "
                f"Got {expression_text(on)}."
            )
        raise StatementFailed(f"Unsupported join expression: {expression_text(on)}")
    if on.operator != "=":
        raise StatementFailed("Only equality join criteria is supported.")
    return on


def _only_source(
    side: ex.Expression, comparison: ex.Comparison, references: References
) -> FromSource:
    found = references.sources_of(side)
    if len(found) != 1:
        raise StatementFailed(
            f"Invalid comparison expression '{expression_text(side)}' in join "
            f"'{expression_text(comparison)}'. Each side of the join comparision must contain "
            "references from exactly one source."
        )
    return references.source(found.pop())


def check_windows(left: FromSource, right: FromSource) -> None:
    """Refuse joins of windowed with other sources, and of sessions with other windows."""
    first, second = left.info.window, right.info.window
    if first is None and second is None:
        return
    if first is None or second is None:
        shown = [
            f"`{side.alias}` is {window.kind.value if window else 'not'} windowed"
            for side, window in ((left, first), (right, second))
        ]
        raise StatementFailed(
            "Can not join windowed source to non-windowed source.\n" + "\n".join(shown)
        )
    if (first.size_ms is None) != (second.size_ms is None):
        raise StatementFailed(
            "Incompatible windowed sources.\n"
            f"Left source: {first.kind.value}\nRight source: {second.kind.value}\n"
            "Session windowed sources can only be joined to other session windowed sources, and "
            "may still not result in expected behaviour as session bounds must be an exact match "
            "for the join to work\n"
            "Hopping and tumbling windowed sources can only be joined to other hopping and "
            "tumbling windowed sources"
        )


def _joined(
    tree: FromSource | JoinTree,
    source: FromSource,
    join: Join,
    criterion: Criterion,
    default_key_format: str,
) -> JoinTree:
    foreign = _check_kinds(tree, source, join, criterion)
    in_key = isinstance(tree, JoinTree) and criterion.left in tree.equivalent
    left = JoinInput(tree, criterion.left, may_rekey=not foreign and not in_key)
    struct_key = abilities(source.info.key_format.name).inferred and any(
        str(each.type).startswith("STRUCT") for each in source.info.schema.key
    )
    right = JoinInput(source, criterion.right, may_rekey=not foreign or struct_key)
    before = tree.sources if isinstance(tree, JoinTree) else (tree,)
    return JoinTree(
        join.kind,
        criterion,
        join.within,
        left,
        right,
        foreign,
        default_key_format,
        *_equivalents(tree, join.kind, criterion),
        sources=(*before, source),
    )


def _equivalents(
    tree: FromSource | JoinTree, kind: JoinKind, criterion: Criterion
) -> tuple[frozenset[ex.Expression], tuple[ex.Name, ...]]:
    if kind is JoinKind.OUTER:
        return frozenset(), ()
    found = frozenset({criterion.left, criterion.right})
    before: tuple[ex.Name, ...] = ()
    if isinstance(tree, JoinTree):
        before = tree.viable
        if tree.equivalent & found:
            found |= tree.equivalent
    viable: list[ex.Name] = []
    for each in (*before, criterion.left, criterion.right):
        if isinstance(each, ex.Name) and each in found and each not in viable:
            viable.append(each)
    return found, tuple(viable)


def _check_kinds(
    tree: FromSource | JoinTree, source: FromSource, join: Join, criterion: Criterion
) -> bool:
    """Refuse unsupported joins; returns whether it is a foreign-key join."""
    names = f"{_name_of(tree)} {KIND_TEXTS[join.kind]} {source.info.name}"
    right_is_key = criterion.right in key_of(source)
    if not is_table(tree):
        if is_table(source):
            _check_stream_table(join.kind, names, criterion, right_is_key=right_is_key)
        return False
    if not is_table(source):
        raise StatementFailed(
            "Invalid join order: table-stream joins are not supported; only stream-table joins. "
            f"Got {names}."
        )
    if not right_is_key:
        raise StatementFailed(
            "Invalid join condition: table-table joins require to join on the primary key of the "
            f"right input table. Got {criterion.shown}."
        )
    if _is_key(criterion.left, tree):
        return False
    if join.kind is JoinKind.OUTER:
        raise StatementFailed(
            "Invalid join type: full-outer join not supported for foreign-key table-table join. "
            f"Got {names}."
        )
    if join.kind is JoinKind.RIGHT:
        raise StatementFailed("RIGHT OUTER JOIN on a foreign key is not supported")
    if isinstance(tree, JoinTree):
        raise StatementFailed(
            "Invalid join condition: foreign-key table-table joins are not supported as part of "
            f"n-way joins. Got {criterion.shown}."
        )
    return True


def _check_stream_table(
    kind: JoinKind, names: str, criterion: Criterion, *, right_is_key: bool
) -> None:
    if kind is JoinKind.OUTER:
        raise StatementFailed(
            f"Invalid join type: full-outer join not supported for stream-table join. Got {names}."
        )
    if kind is JoinKind.RIGHT:
        raise StatementFailed(
            f"Invalid join type: right join not supported for stream-table join. Got {names}."
        )
    if not right_is_key:
        raise StatementFailed(
            "Invalid join condition: stream-table joins require to join on the table's primary "
            f"key. Got {criterion.shown}."
        )


def _is_key(expression: ex.Expression, tree: FromSource | JoinTree) -> bool:
    """Whether an expression is the key column of its own source."""
    sources = tree.sources if isinstance(tree, JoinTree) else (tree,)
    return any(expression in key_of(each) for each in sources)


def _name_of(tree: FromSource | JoinTree) -> str:
    return tree.sources[0].info.name if isinstance(tree, JoinTree) else tree.info.name
