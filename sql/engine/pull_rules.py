"""Rules of pull queries: the conditions on a table's key in WHERE, with and without table scans."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from sql.analyse.expression_text import expression_text
from sql.analyse.trees import walk
from sql.catalog import SourceInfo
from sql.datatypes import STRING, Column
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.syntax import expressions as ex

TABLE_SCANS = "ksql.query.pull.table.scan.enabled"
RANGE_SCANS = "ksql.query.pull.range.scan.enabled"
SEE = "See https://cnfl.io/queries for more info."
DISJUNCTS_MAX = 1_000
EQUAL = "="
UNEQUAL = ("<>", "!=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class ScanNeeded(StatementFailed):
    """The query needs a table scan, which the settings do not allow."""

    def __init__(self) -> None:
        super().__init__(
            "Query requires table scan to be enabled. Table scans can be enabled by setting "
            f"{TABLE_SCANS}=true. {SEE}"
        )


def check_key_values(where: ex.Expression | None, source: SourceInfo) -> None:
    """Refuse nulls and wrong types in IN conditions on the key."""
    keys = {each.name: each for each in source.schema.key}
    for node in () if where is None else walk(where):
        if not isinstance(node, ex.In) or not isinstance(node.value, ex.Name):
            continue
        column = keys.get(node.value.name)
        for choice in node.choices if column is not None else ():
            assert column is not None
            if isinstance(choice, ex.Null):
                raise StatementFailed(
                    f"Primary key columns can not be NULL: ({column.name} = null)"
                )
            if isinstance(choice, ex.StringLiteral) and not _takes_text(column):
                raise StatementFailed(
                    f"'{choice.value}' can not be converted to the type of the key column: "
                    f"{column.name} {column.type} KEY"
                )


def _takes_text(column: Column) -> bool:
    return str(column.type) in ("STRING", "TIME", "DATE", "TIMESTAMP", "BYTES")


def check_without_scans(where: ex.Expression | None, source: SourceInfo, config: SqlConfig) -> None:
    """Refuse queries that need a table scan, if scans are not allowed."""
    if config.flag(TABLE_SCANS):
        return
    if where is None:
        raise ScanNeeded
    rules = _Rules(source.schema.key)
    disjuncts = list(_disjuncts(where))
    ranges = False
    for disjunct in disjuncts:
        ranges |= rules.has_range(disjunct)
    single = len(source.schema.key) == 1 and source.schema.key[0].type is STRING
    allowed = single and source.window is None and len(disjuncts) == 1
    if ranges and not (allowed and config.flag(RANGE_SCANS)):
        raise ScanNeeded


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules for the conditions on the key in one alternative."""

    key: tuple[Column, ...]

    def has_range(self, terms: Sequence[ex.Expression]) -> bool:
        """Whether the key is compared by order; StatementFailed if it is not compared at all."""
        operators: dict[str, str] = {}
        for term in terms:
            if isinstance(term, ex.Like) and not isinstance(term.value, ex.Name):
                raise StatementFailed(f"Like condition must be between strings. {SEE}")
            found = self._of_key(term)
            if found is None:
                continue
            name, operator = found
            if name in operators:
                raise StatementFailed(
                    "A comparison condition on the key column cannot be combined with other "
                    f"comparisons such as an IN predicate. {SEE}"
                )
            operators[name] = operator
        self._check_complete(operators, terms)
        shown = ", ".join(f"`{each.name}` {each.type} KEY" for each in self.key)
        if any(each in UNEQUAL for each in operators.values()):
            raise StatementFailed(f"Bound on key columns '[{shown}]' must currently be '='. {SEE}")
        return any(each != EQUAL for each in operators.values())

    def _check_complete(self, operators: dict[str, str], terms: Sequence[ex.Expression]) -> None:
        names = [each.name for each in self.key]
        missing = [each for each in names if each not in operators]
        if missing and len(names) > 1:
            raise StatementFailed(
                "Multi-column sources must specify every key in the WHERE clause. Specified: "
                f"[{', '.join(f'`{each}`' for each in operators)}] Expected: "
                f"[{', '.join(f'`{each.name}` {each.type} KEY' for each in self.key)}]. {SEE}"
            )
        if missing:
            text = " AND ".join(map(expression_text, terms))
            raise StatementFailed(f"WHERE clause missing key column for disjunct: {text}. {SEE}")

    def _of_key(self, term: ex.Expression) -> tuple[str, str] | None:
        if isinstance(term, ex.Like | ex.Between) and self._key_name(term.value) is not None:
            raise ScanNeeded
        if not isinstance(term, ex.Comparison):
            return None
        for column, other, operator in (
            (term.left, term.right, term.operator),
            (term.right, term.left, MIRRORED.get(term.operator, term.operator)),
        ):
            name = self._key_name(column)
            if name is None:
                continue
            if any(isinstance(each, ex.Name) for each in walk(other)):
                raise StatementFailed(
                    f"A comparison must be between a key column and a resolvable expression. {SEE}"
                )
            return name, operator
        return None

    def _key_name(self, expression: ex.Expression) -> str | None:
        if not isinstance(expression, ex.Name):
            return None
        return expression.name if any(each.name == expression.name for each in self.key) else None


def _disjuncts(where: ex.Expression) -> Iterator[tuple[ex.Expression, ...]]:
    """The alternatives of a condition, each a list of conditions that must all be true."""
    found: list[tuple[ex.Expression, ...]] = []
    match where:
        case ex.Logical(operator="OR", left=left, right=right):
            found = [*_disjuncts(left), *_disjuncts(right)]
        case ex.Logical(operator="AND", left=left, right=right):
            found = [(*a, *b) for a, b in product(_disjuncts(left), _disjuncts(right))]
        case ex.In(value=value, choices=choices, negated=False):
            found = [(ex.Comparison(EQUAL, value, each),) for each in choices]
        case _:
            found = [(where,)]
    if len(found) > DISJUNCTS_MAX:
        raise ScanNeeded
    yield from found
