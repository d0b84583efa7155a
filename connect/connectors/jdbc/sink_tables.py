"""SinkTables: the target tables, which may be created and extended."""

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from connect.connectors.jdbc.database import Database
from connect.connectors.jdbc.dialects.dialect import TableColumn
from connect.connectors.jdbc.dialects.values import in_zone
from connect.connectors.jdbc.row_plan import SinkField
from connect.connectors.jdbc.tables import TableName
from connect.errors import ConnectError

if TYPE_CHECKING:
    from sqlalchemy import Column

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SinkTables:
    """The structure of the tables in the database."""

    database: Database
    create: bool
    evolve: bool
    kinds: frozenset[str]
    known: dict[TableName, dict[str, TableColumn]] = dataclasses.field(default_factory=dict)
    views: set[TableName] = dataclasses.field(default_factory=set)

    def forget(self) -> None:
        """Drops the cached structures: tables may have changed."""
        self.known.clear()
        self.views.clear()

    def columns(self, table: TableName) -> dict[str, TableColumn] | None:
        """The columns of a table by name; None if it does not exist."""
        result = self.known.get(table)
        if result is None:
            described = self.database.describe(table)
            if described is None:
                return None
            if described.is_view:
                self._check_views_are_allowed(table)
                self.views.add(table)
            result = {column.name: column for column in described.columns}
            self.known[table] = result
        return result

    def _check_views_are_allowed(self, table: TableName) -> None:
        if "VIEW" not in self.kinds:
            raise ConnectError(
                f"{table} is a view",
                at=str(self.database),
                hint=f"table.types allows only {', '.join(sorted(self.kinds))}",
            )

    def is_view(self, table: TableName) -> bool:
        """Whether a table is a view; after `columns` was called."""
        return table in self.views

    def columns_for(self, table: TableName, fields: Sequence[SinkField]) -> list[TableColumn]:
        """The column of every field; creates or extends the table if necessary."""
        columns = self.columns(table)
        if columns is None:
            columns = self._create(table, fields)
        matched = _matched(columns, fields)
        missing = [field for field in fields if field.name not in matched]
        if missing:
            columns = self._extend(table, missing)
            matched = _matched(columns, fields)
        return [matched[field.name] for field in fields]

    def _create(self, table: TableName, fields: Sequence[SinkField]) -> dict[str, TableColumn]:
        if not self.create:
            raise ConnectError(
                f"Table {table} is missing and auto-creation is disabled",
                at=str(self.database),
                hint="create the table, or set auto.create=true",
            )
        from sqlalchemy.schema import CreateTable

        made = self._table(table, fields)
        self._run([str(CreateTable(made).compile(dialect=self.database.engine().dialect))], table)
        columns = self.columns(table)
        if columns is None:
            raise ConnectError(f"table {table} does not exist after it was created")
        return columns

    def _extend(self, table: TableName, missing: Sequence[SinkField]) -> dict[str, TableColumn]:
        names = ", ".join(field.name for field in missing)
        if not self.evolve:
            raise ConnectError(
                f"Table {table} is missing fields ({names}) and auto-evolution is disabled",
                at=str(self.database),
                hint="add the columns, set auto.evolve=true, or exclude the fields with "
                "fields.whitelist",
            )
        for field in missing:
            if not field.schema.optional and field.schema.default is None:
                raise ConnectError(
                    f"Cannot ALTER {table} to add missing field {field.name}, as the field is "
                    "not optional and does not have a default value"
                )
        from sqlalchemy.schema import CreateColumn

        made = self._table(table, missing)
        dialect = self.database.engine().dialect
        name = self.database.quoting.table(_without_catalog_of_postgres(table))
        statements = [
            f"ALTER TABLE {name} ADD {CreateColumn(column).compile(dialect=dialect)}"
            for column in made.columns
        ]
        self._run(statements, table)
        self.known.pop(table, None)
        columns = self.columns(table)
        assert columns is not None, "a table that was extended exists"
        return columns

    # Any: SQLAlchemy's Table, whose module is imported when it is needed.
    def _table(self, table: TableName, fields: Sequence[SinkField]) -> Any:
        from sqlalchemy import MetaData, Table

        return Table(
            table.name,
            MetaData(),
            *(self._column(field) for field in fields),
            schema=table.schema or table.catalog,
            quote=self.database.quoting.always,
            quote_schema=self.database.quoting.always,
        )

    def _column(self, field: SinkField) -> "Column[Any]":
        from sqlalchemy import Column, literal

        column_type = self.database.dialect.column_type(field.schema, is_key=field.is_key)
        default = field.schema.default
        if isinstance(default, datetime):
            default = in_zone(self.database.session.zone)(default)
        return Column(
            field.name,
            column_type,
            primary_key=field.is_key,
            autoincrement=False,
            nullable=field.schema.optional and not field.is_key,
            server_default=None if default is None else literal(default, column_type),
            quote=self.database.quoting.always,
        )

    def _run(self, statements: Sequence[str], table: TableName) -> None:
        """Run DDL; if another task was faster, a retry of the records uses its table."""
        for statement in statements:
            _log.info("%s: %s", self.database, statement.strip())
            with self.database.sqlalchemy(f"cannot change table {table}") as connection:
                connection.exec_driver_sql(statement.replace("%", "%%"))


def _without_catalog_of_postgres(table: TableName) -> TableName:
    return table if table.schema is None else TableName(None, table.schema, table.name)


def _matched(
    columns: dict[str, TableColumn], fields: Sequence[SinkField]
) -> dict[str, TableColumn]:
    """Columns by the names of fields; case is ignored if only one column matches."""
    result = {}
    for field in fields:
        similar = [name for name in columns if name.lower() == field.name.lower()]
        if field.name in columns:
            result[field.name] = columns[field.name]
        elif len(similar) == 1:
            result[field.name] = columns[similar[0]]
    return result
