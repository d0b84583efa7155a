"""INSERT INTO ... VALUES: checks that the source and its columns can be written to."""

from sql.catalog import Catalog, SourceInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.schema import ROWOFFSET, ROWPARTITION, ROWTIME
from sql.syntax.statements import InsertValues


def insertion_target(statement: InsertValues, catalog: Catalog) -> SourceInfo:
    """The source that rows are written to; StatementFailed if it does not allow writes."""
    name = statement.target
    source = catalog.sources.get(name)
    if source is None:
        alike = next((each for each in catalog.sources if each.upper() == name.upper()), None)
        more = ""
        if alike is not None:
            more = (
                f'\nDid you mean "{alike}"? Hint: wrap the source name in double quotes to make it '
                "case-sensitive."
            )
        raise StatementFailed(f"Cannot insert values into an unknown stream/table: `{name}`{more}")
    if source.is_source:
        raise StatementFailed(f"Cannot insert values into read-only {source.shown_kind}: {name}")
    if source.window is not None:
        raise StatementFailed(f"Cannot insert values into windowed stream or table: {name}")
    return source


def insertion_columns(statement: InsertValues, source: SourceInfo) -> list[Column]:
    """The column of each value; without a list of columns all of them, key columns first."""
    known = {each.name: each for each in (ROWTIME, *source.schema.key, *source.schema.value)}
    headers = {each.name for each in source.schema.headers}
    declared = [each.name for each in source.schema.declared]
    names = list(statement.columns) or declared
    for forbidden in (ROWPARTITION, ROWOFFSET):
        if forbidden.name in names:
            raise StatementFailed(f"Inserting into column `{forbidden.name}` is not allowed.")
    wrong = [each for each in names if each in headers]
    if wrong:
        raise StatementFailed(f"Cannot insert into HEADER columns: {', '.join(wrong)}")
    unknown = [each for each in names if each not in known]
    if unknown:
        raise StatementFailed(
            f"Column name {', '.join(f'`{each}`' for each in unknown)} does not exist."
        )
    if len(set(names)) < len(names):
        raise StatementFailed("a column is named twice in an INSERT INTO")
    if len(names) != len(statement.values):
        shown = ", ".join(f"`{each}`" for each in names)
        raise StatementFailed(
            f"Expected a value for each column. Expected columns: [{shown}]. Got "
            f"{len(statement.values)} values"
        )
    return [known[each] for each in names]
