"""Generated names of columns without an alias: KSQL_COL_0, FIELD_1, ROWKEY."""

import re
from collections.abc import Iterable

from sql.syntax import expressions as ex

NUMBERED = re.compile(r"(?P<name>.*?)(?:_(?P<number>\d+))?", re.DOTALL)
GENERATED = "KSQL_COL"
SYNTHETIC_KEY = "ROWKEY"


class Aliases:
    """Generates unique names that are not names of the sources' columns."""

    def __init__(self, used: Iterable[str]) -> None:
        """`used` are the names of the sources' columns."""
        self._used: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}
        for each in used:
            name, number = _split(each)
            self._used.setdefault(name, set()).add(number)

    def of(self, expression: ex.Expression) -> str:
        """The name of an expression: that of a field, or KSQL_COL_n."""
        if isinstance(expression, ex.FieldOf):
            return self._following(_split(expression.field)[0])
        return self._following(GENERATED)

    def synthetic_key(self) -> str:
        """The name of a join's key that is not a column of a source."""
        return self._following(SYNTHETIC_KEY)

    def _following(self, prefix: str) -> str:
        number = self._next.get(prefix, 0)
        while number in self._used.get(prefix, ()):
            number += 1
        self._next[prefix] = number + 1
        return prefix if number == 0 and prefix != GENERATED else f"{prefix}_{number}"


def joined_name(source: str, column: str) -> str:
    """The name of a source's column in the rows of a join."""
    return f"{source}_{column}"


def _split(name: str) -> tuple[str, int]:
    found = NUMBERED.fullmatch(name)
    assert found is not None
    return found["name"], int(found["number"] or 0)
