"""Changes of existing objects: CREATE OR REPLACE, ALTER, DROP, and custom types."""

from collections.abc import Collection
from dataclasses import replace

from sql.analyse.type_names import data_type
from sql.catalog import Catalog, SourceInfo
from sql.datatypes import Column, DataType
from sql.errors import StatementFailed
from sql.formats import check_format
from sql.schema import RESERVED_NAMES
from sql.syntax.statements import (
    AlterSource,
    ColumnRole,
    CreateType,
    DropSource,
    DropType,
    SourceKind,
)


def check_replacement(existing: SourceInfo, made: SourceInfo) -> None:
    """Refuse a CREATE OR REPLACE that does more than adding columns at the end."""
    for what, before, after in (
        ("type", existing.kind.value, made.kind.value),
        ("topic", existing.topic, made.topic),
        ("key format", existing.key_format.name, made.key_format.name),
        ("value format", existing.value_format.name, made.value_format.name),
        ("window", existing.window, made.window),
    ):
        if before != after:
            raise StatementFailed(
                f"Cannot upgrade data source: DataSource '`{made.name}`' has {what} = {before} "
                f"which is not upgradeable to {after}"
            )
    why = ""
    changed = _changed(existing.schema.key, made.schema.key)
    if changed or len(existing.schema.key) != len(made.schema.key):
        shown = ", ".join(f"`{each.name}` {each.type} KEY" for each in changed)
        why = (
            "Key columns must be identical. The following key columns are changed, missing or "
            f"reordered: [{shown}]"
        )
    elif changed := _changed(existing.schema.value, made.schema.value):
        shown = ", ".join(f"`{each.name}` {each.type}" for each in changed)
        why = f"The following columns are changed, missing or reordered: [{shown}]"
    if why:
        raise StatementFailed(
            f"Cannot upgrade data source: DataSource '`{made.name}`' has schema = "
            f"{existing.schema} which is not upgradeable to {made.schema}. ({why})"
        )


def _changed(before: tuple[Column, ...], after: tuple[Column, ...]) -> list[Column]:
    return [each for n, each in enumerate(before) if n >= len(after) or after[n] != each]


def altered(statement: AlterSource, catalog: Catalog) -> SourceInfo:
    """The source with the columns that ALTER adds."""
    source = catalog.sources.get(statement.name)
    if source is None:
        raise StatementFailed(f"Source {statement.name} does not exist.")
    if source.kind is not statement.kind:
        raise StatementFailed(
            f"Incompatible data source type is {source.kind.value}, but statement was "
            f"ALTER {statement.kind.value}"
        )
    kind = source.shown_kind
    if source.is_source:
        raise StatementFailed(
            f"Cannot alter {kind} '{source.name}': ALTER operations are not supported on source "
            f"{kind}s."
        )
    if source.query_id is not None:
        raise StatementFailed(
            f"ALTER command is not supported for CREATE ... AS statements.\n{source.name} is "
            "created by a query",
            hint="use CREATE OR REPLACE instead",
        )
    values = list(source.schema.value)
    names = {each.name for each in source.schema.columns}
    for each in statement.added:
        if each.role is not ColumnRole.VALUE:
            raise StatementFailed("Only value columns can be added by ALTER.")
        if each.name in RESERVED_NAMES:
            raise StatementFailed(
                f"'{each.name}' is a reserved column name. You cannot use it as a name for a "
                "column."
            )
        if each.name in names:
            raise StatementFailed(
                f"Cannot add column `{each.name}` to schema. A column with the same name already "
                "exists."
            )
        names.add(each.name)
        values.append(Column(each.name, data_type(each.type, catalog.types)))
    check_format(source.value_format, values, is_key=False)
    return replace(source, schema=replace(source.schema, value=tuple(values)))


def dropped(
    statement: DropSource,
    catalog: Catalog,
    readers: Collection[str] = (),
    writers: Collection[str] = (),
) -> SourceInfo | None:
    """The source that DROP removes; None if it does not exist, with IF EXISTS."""
    source = _existing(statement.kind, statement.name, catalog, optional=statement.if_exists)
    if source is None:
        return None
    if source.is_source and statement.delete_topic:
        raise StatementFailed(f"Cannot delete topic for read-only source: {source.name}")
    if readers or writers:
        raise StatementFailed(
            f"Cannot drop {source.name}.\n"
            f"The following queries read from this source: [{', '.join(sorted(readers))}].\n"
            f"The following queries write into this source: [{', '.join(sorted(writers))}].\n"
            f"You need to terminate them before dropping {source.name}."
        )
    return source


def _existing(
    kind: SourceKind, name: str, catalog: Catalog, *, optional: bool = False
) -> SourceInfo | None:
    source = catalog.sources.get(name)
    if source is None:
        if optional:
            return None
        raise StatementFailed(f"{kind.value.capitalize()} {name} does not exist.")
    if source.kind is not kind:
        raise StatementFailed(
            f"Incompatible data source type is {source.kind.value}, but statement was "
            f"DROP {kind.value}"
        )
    return source


def created_type(statement: CreateType, catalog: Catalog) -> DataType | None:
    """The type that CREATE TYPE creates; None if it exists, with IF NOT EXISTS."""
    if statement.name in catalog.types:
        if statement.if_not_exists:
            return None
        raise StatementFailed(
            f"Cannot register custom type '{statement.name}' since it is already registered with "
            f"type: {catalog.types[statement.name]}"
        )
    return data_type(statement.type, catalog.types)


def check_drop_type(statement: DropType, catalog: Catalog) -> bool:
    """Whether there is a type to drop."""
    if statement.name in catalog.types:
        return True
    if not statement.if_exists:
        raise StatementFailed(f"Type {statement.name} does not exist.")
    return False
