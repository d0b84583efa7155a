"""SELECT: its items with names, the expansion of stars, and the key columns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sql.analyse.expression_text import expression_text
from sql.datatypes import StructType
from sql.errors import StatementFailed
from sql.planner.aliases import Aliases, joined_name
from sql.planner.references import References
from sql.schema import RESERVED_NAMES
from sql.syntax import expressions as ex
from sql.syntax.queries import SelectAll, SelectExpression, SelectFields, SelectItem

NO_VALUES = "The projection contains no value columns."


@dataclass(frozen=True, slots=True)
class Selected:
    """A column of the result: its name and expression."""

    name: str
    expression: ex.Expression


@dataclass(frozen=True, slots=True)
class StarItem:
    """* or source.*, which is expanded when the previous steps are planned."""

    source: str | None


Item = Selected | StarItem
TypeOf = Callable[[ex.Expression], object]


class Selection:
    """The items of a SELECT, with the sources of all names."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = tuple(items)
        self._expressions = {each.expression for each in items if isinstance(each, Selected)}
        self._stars = {each.source for each in items if isinstance(each, StarItem)}

    def contains(self, expression: ex.Expression) -> bool:
        """Whether an expression is a column of the result."""
        if None in self._stars or expression in self._expressions:
            return True
        return isinstance(expression, ex.Name) and expression.source in self._stars

    def expressions(self) -> list[ex.Expression]:
        """All expressions of the items."""
        return [each.expression for each in self.items if isinstance(each, Selected)]


def read_selection(
    items: Iterable[SelectItem], references: References, type_of: TypeOf, *, persistent: bool
) -> Selection:
    """The items of a SELECT; items without a name get a generated one."""
    used = (column.name for each in references.sources for column in each.info.schema.columns)
    aliases = Aliases(used)
    found: list[Item] = []
    for item in items:
        match item:
            case SelectAll(source=source):
                if source is not None:
                    references.source(source)
                found.append(StarItem(source))
            case SelectFields(struct=struct):
                found.extend(_fields(references.qualified(struct), aliases, type_of))
            case SelectExpression(expression=expression, alias=alias):
                qualified = references.qualified(expression)
                name = alias or _name_of(qualified, references, aliases)
                _check_name(name, qualified, explicit=alias is not None, persistent=persistent)
                found.append(Selected(name, qualified))
    return Selection(found)


def _fields(struct: ex.Expression, aliases: Aliases, type_of: TypeOf) -> Iterable[Selected]:
    type_ = type_of(struct)
    if not isinstance(type_, StructType):
        raise StatementFailed(
            f"Cannot apply `->*` to {expression_text(struct)}: it is {type_}, not a STRUCT"
        )
    for field in type_.fields:
        value = ex.FieldOf(struct, field.name)
        yield Selected(aliases.of(value), value)


def _name_of(expression: ex.Expression, references: References, aliases: Aliases) -> str:
    if not isinstance(expression, ex.Name):
        return aliases.of(expression)
    if expression.source is not None and references.clashes(expression.name):
        return joined_name(expression.source, expression.name)
    return expression.name


def _check_name(name: str, expression: ex.Expression, *, explicit: bool, persistent: bool) -> None:
    if name.upper() not in RESERVED_NAMES:
        return
    is_column = isinstance(expression, ex.Name) and expression.name.upper() == name.upper()
    if not is_column:
        raise StatementFailed(
            f"`{name.upper()}` is a reserved column name. You cannot use it as an alias for a "
            "column."
        )
    if persistent:
        raise StatementFailed(
            f"Reserved column name in select: `{name.upper()}`. Please remove or alias the column."
        )


def missing_keys(
    sink: str,
    what: str,
    keys: Sequence[ex.Expression],
    *,
    all_needed: bool = True,
    synthetic: bool = False,
) -> StatementFailed:
    """The error for a projection without the key, or without all key columns."""
    shown = [expression_text(each) for each in keys]
    joined = in_words(shown, "and" if all_needed else "or")
    example = ", ".join(shown) if all_needed else shown[0]
    before = "Keys" if all_needed and len(keys) > 1 else "Key"
    link = "See https://cnfl.io/2LV7ouS." if synthetic else ""
    after = (
        f"\n{shown[0]} was added as a synthetic key column because the join criteria did not match "
        "any source column. This expression must be included in the projection and may be aliased."
        if synthetic
        else ""
    )
    return StatementFailed(
        f"{before} missing from projection (ie, SELECT). {link}\n"
        f"The query used to build `{sink}` must include the "
        f"{what}{'' if len(keys) == 1 else 's'} {joined} in its projection "
        f"(eg, SELECT {example}...).{after}"
    )


def repeated_key(column: str, names: Iterable[str]) -> StatementFailed:
    """The error for a projection that contains a key column twice."""
    return StatementFailed(
        f"The projection contains a key column (`{column}`) more than once, aliased as: "
        f"{in_words(sorted(names), 'and')}.\n"
        "Each key column must only be in the projection once. If you intended to copy the key "
        "into the value, then consider using the AS_VALUE function to indicate which key "
        "reference should be copied."
    )


def in_words(parts: Sequence[str], word: str) -> str:
    """A list in words: a, b and c."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"
