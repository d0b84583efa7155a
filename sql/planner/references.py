"""References: resolves the names in a query to its sources.

Every name is qualified with its source, so that equal expressions are equal trees, however they
were written. Names that no source has are unchanged: they may be a synthetic key or the bounds of a
window, which only later steps resolve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sql.analyse.expression_text import name_text, reference_text
from sql.analyse.trees import changed, walk
from sql.catalog import SourceInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.expressions import ColumnValue
from sql.plan import Shape
from sql.planner.aliases import SYNTHETIC_KEY, joined_name
from sql.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS
from sql.syntax import expressions as ex

BOUND_NAMES = frozenset(each.name for each in WINDOW_BOUNDS)


@dataclass(frozen=True, slots=True)
class FromSource:
    """A stream or table of FROM, under its alias."""

    alias: str
    info: SourceInfo

    @property
    def row(self) -> tuple[Column, ...]:
        """The columns of its rows, as in a Scan."""
        schema = self.info.schema
        headers = (Column(each.name, each.type) for each in schema.headers)
        bounds = WINDOW_BOUNDS if self.info.window is not None else ()
        return (*schema.value, *headers, *PSEUDO_COLUMNS, *bounds, *schema.key)

    def has(self, name: str) -> bool:
        """Whether it has a column with this name."""
        return any(each.name == name for each in self.row)


class References:
    """The sources of one query."""

    def __init__(self, sources: Sequence[FromSource], bounds: frozenset[str] = frozenset()) -> None:
        """In the order of the query; `bounds` are names of the query's own windows."""
        self._bounds = bounds
        self.sources = tuple(sources)
        self._by_alias = {each.alias: each for each in sources}

    @property
    def is_join(self) -> bool:
        """Whether there are several sources."""
        return len(self.sources) > 1

    def source(self, alias: str) -> FromSource:
        """The source with an alias."""
        result = self._by_alias.get(alias)
        if result is None:
            raise StatementFailed(
                f"Failed to prepare statement: '{alias}' is not a valid stream/table name or alias."
            )
        return result

    def clashes(self, name: str) -> bool:
        """Whether several sources have a column with this name."""
        return sum(each.has(name) for each in self.sources) > 1

    def qualified(self, expression: ex.Expression) -> ex.Expression:
        """The expression with qualified names; names without a source are unchanged."""
        return self._qualified(expression, frozenset())

    def _qualified(self, expression: ex.Expression, variables: frozenset[str]) -> ex.Expression:
        def change(node: ex.Expression) -> ex.Expression | None:
            if isinstance(node, ex.Lambda):
                self._check_lambda(node, variables)
                body = self._qualified(node.body, variables | set(node.parameters))
                return replace(node, body=body)
            if not isinstance(node, ex.Name):
                return None
            is_variable = node.source is None and node.name in variables
            return node if is_variable else self._found(node)

        return changed(expression, change)

    def _check_lambda(self, node: ex.Lambda, variables: frozenset[str]) -> None:
        for name in node.parameters:
            if any(
                column.name == name for each in self.sources for column in each.info.schema.columns
            ):
                raise StatementFailed(f"Lambda function argument can't be a column name: {name}")
            if name in variables:
                raise StatementFailed("Reusing lambda arguments in nested lambda is not allowed")

    def _found(self, node: ex.Name) -> ex.Name:
        if node.source is not None:
            source = self.source(node.source)
            of_window = node.name in self._bounds and source.info.window is None
            return replace(node, source=None) if of_window else node
        found = [each.alias for each in self.sources if each.has(node.name)]
        if len(found) > 1:
            possible = " or ".join(f"{name_text(each)}.{name_text(node.name)}" for each in found)
            raise _failed(
                f"Column '{name_text(node.name)}' is ambiguous. Could be {possible}.",
                node,
                before="Exception while preparing statement: ",
            )
        return replace(node, source=found[0]) if found else node

    def check(self, expression: ex.Expression, clause: str, *, others: Sequence[str] = ()) -> None:
        """Refuse names that no source has; `others` are names that later steps define."""
        for node in names_in(expression):
            known = node.name in others if node.source is None else self._known(node)
            if not known:
                more = ""
                if clause == "PARTITION BY":
                    shown = reference_text(node)
                    more = (
                        f" '{shown}' must be a column in the source schema since PARTITION BY is "
                        "applied on the input."
                    )
                raise _failed(
                    f"{clause} column '{reference_text(node)}' cannot be resolved.{more}", node
                )

    def _known(self, node: ex.Name) -> bool:
        assert node.source is not None
        return self._by_alias[node.source].has(node.name)

    def sources_of(self, expression: ex.Expression) -> set[str]:
        """The aliases of the sources that an expression uses."""
        return {node.source for node in names_in(expression) if node.source is not None}


def names_in(expression: ex.Expression) -> list[ex.Name]:
    """The columns that an expression uses, without the variables of lambdas."""
    result: list[ex.Name] = []
    variables: set[str] = set()
    for node in walk(expression):
        if isinstance(node, ex.Lambda):
            variables.update(node.parameters)
        elif isinstance(node, ex.Name) and not (node.source is None and node.name in variables):
            result.append(node)
    return result


def maybe_synthetic(name: str) -> bool:
    """Whether the name may be a synthetic key of a join."""
    return name.startswith(SYNTHETIC_KEY)


class RowScope:
    """The columns of a step's rows, by the names of a query."""

    def __init__(self, shape: Shape, *, is_join: bool, clause: str = "") -> None:
        """Columns of a join have the names of their sources as prefixes."""
        self._row = {each.name: n for n, each in enumerate(shape.row)}
        self._columns = shape.row
        self._is_join = is_join
        self._clause = clause

    def find(self, reference: ex.Name) -> ColumnValue:
        """The column with a name."""
        name = reference.name
        if self._is_join and reference.source is not None:
            name = joined_name(reference.source, name)
        place = self._row.get(name)
        if place is None:
            if reference.name in BOUND_NAMES and not self._clause:
                raise StatementFailed(f"Unknown column {reference.name}.")
            noun = f"{self._clause} column" if self._clause else "Column"
            raise _failed(f"{noun} '{reference_text(reference)}' cannot be resolved.", reference)
        return ColumnValue(place, name, self._columns[place].type)


def _failed(message: str, node: ex.Expression, *, before: str = "") -> StatementFailed:
    place = node.position
    where = f"Line: {place.line}, Col: {place.column}: " if place.line else ""
    return StatementFailed(f"{before}{where}{message}", line=place.line, column=place.column)
