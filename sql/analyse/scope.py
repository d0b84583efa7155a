"""Scope: the columns that an expression may use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sql.analyse.expression_text import reference_text
from sql.errors import StatementFailed
from sql.expressions import ColumnValue
from sql.syntax.expressions import Name


class Scope(Protocol):
    """Resolves names to columns."""

    def find(self, reference: Name) -> ColumnValue:
        """The column with a name; StatementFailed if there is none or more than one."""
        ...


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column with the names by which statements refer to it, with or without its source."""

    source: str
    name: str
    value: ColumnValue


class Columns:
    """The columns of one or several sources."""

    def __init__(self, columns: Iterable[ScopeColumn], *, clause: str = "") -> None:
        """`clause` is the clause named in errors: SELECT, WHERE and so on."""
        self._columns: dict[str, list[ScopeColumn]] = {}
        for column in columns:
            self._columns.setdefault(column.name, []).append(column)
        self._clause = clause

    def find(self, reference: Name) -> ColumnValue:
        """The column with a name."""
        found: Sequence[ScopeColumn] = self._columns.get(reference.name, ())
        if reference.source is not None:
            found = [each for each in found if each.source == reference.source]
        if len(found) == 1:
            return found[0].value
        shown = reference_text(reference)
        if found:
            possible = " or ".join(f"{each.source}.{each.name}" for each in found)
            raise _failed(f"Column '{shown}' is ambiguous. Could be {possible}.", reference)
        noun = f"{self._clause} column" if self._clause else "Column"
        raise _failed(f"{noun} '{shown}' cannot be resolved.", reference)


def _failed(message: str, reference: Name) -> StatementFailed:
    place = reference.position
    where = f"Line: {place.line}, Col: {place.column}: " if place.line else ""
    return StatementFailed(f"{where}{message}", line=place.line, column=place.column)
