"""Statements that are the same in SQLite and PostgreSQL."""

from collections.abc import Callable

from connect.connectors.jdbc.dialects.dialect import Action, Target
from connect.connectors.jdbc.tables import Quoting


def row_statement(
    action: Action, target: Target, quoting: Quoting, placeholder: Callable[[str], str]
) -> str:
    """A statement for one row; its values are in the order of the columns."""
    table = quoting.table(target.table)
    match action:
        case Action.INSERT | Action.UPSERT:
            values = ", ".join(map(placeholder, target.columns))
            text = f"INSERT INTO {table} ({quoting.names(target.columns)}) VALUES ({values})"
            return text if action is Action.INSERT else text + on_conflict(target, quoting)
        case Action.UPDATE:
            changes = equals(target.others, quoting, placeholder, ", ")
            return f"UPDATE {table} SET {changes} WHERE {_is_key(target, quoting, placeholder)}"
        case Action.DELETE:
            return f"DELETE FROM {table} WHERE {_is_key(target, quoting, placeholder)}"


def _is_key(target: Target, quoting: Quoting, placeholder: Callable[[str], str]) -> str:
    return equals(target.keys, quoting, placeholder, " AND ")


def equals(
    names: tuple[str, ...], quoting: Quoting, value: Callable[[str], str], separator: str
) -> str:
    """`name = value` for every name."""
    return separator.join(f"{quoting.name(name)} = {value(name)}" for name in names)


def on_conflict(target: Target, quoting: Quoting) -> str:
    """The ON CONFLICT clause of an INSERT: existing rows are updated."""
    keys = quoting.names(target.keys)
    if not target.others:
        return f" ON CONFLICT ({keys}) DO NOTHING"
    changes = equals(target.others, quoting, lambda name: f"excluded.{quoting.name(name)}", ", ")
    return f" ON CONFLICT ({keys}) DO UPDATE SET {changes}"
