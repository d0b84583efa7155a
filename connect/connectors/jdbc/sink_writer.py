"""SinkWriter: writes rows to tables, one transaction at a time."""

import logging
import operator
from collections.abc import Sequence

from connect.connectors.jdbc.database import Database
from connect.connectors.jdbc.dialects.dialect import Action, Connection, Target
from connect.connectors.jdbc.row_plan import RowPlan, plan_rows
from connect.connectors.jdbc.sink_config import RowMapping
from connect.connectors.jdbc.sink_rows import PreparedRow, TablePlan, operations
from connect.connectors.jdbc.sink_tables import SinkTables
from connect.connectors.jdbc.tables import TableName
from connect.data import ConnectSchema
from connect.errors import DataError
from connect.records import SinkRecord

_log = logging.getLogger(__name__)

_Schemas = tuple[TableName, ConnectSchema | None, ConnectSchema | None]


class SinkWriter:
    """Caches the tables and the connection until an error."""

    def __init__(self, database: Database, tables: SinkTables, mapping: RowMapping) -> None:
        self._database = database
        self._tables = tables
        self._mapping = mapping
        self._connection: Connection | None = None
        self._prepared: set[tuple[Action, Target]] = set()
        self._table_plans: dict[_Schemas, TablePlan] = {}
        # Of the last record: most records have identical schemas.
        self._last: tuple[_Schemas, TablePlan] | None = None

    def row(self, table: TableName, record: SinkRecord) -> PreparedRow | None:
        """The row of a record; None if there is nothing to do, DataError if it is invalid."""
        is_delete = record.value is None
        if is_delete and not self._mapping.deletes:
            raise DataError(
                "the record has no value",
                hint="set delete.enabled=true and pk.mode=record_key to delete its row",
            )
        if not is_delete and record.value_schema is None:
            raise DataError(
                "the record's value has no schema",
                hint="use a converter with schemas: Avro, or JSON with schemas.enable=true",
            )
        value_schema = None if is_delete else record.value_schema
        schemas = (table, record.key_schema, value_schema)
        last = self._last
        if last is not None and all(map(operator.is_, schemas, last[0])):
            table_plan = last[1]
        else:
            found = self._table_plans.get(schemas) or self._find_table_plan(*schemas)
            if found is None:
                return None
            table_plan = self._table_plans[schemas] = found
            self._last = (schemas, table_plan)
        plan = table_plan.plan
        row = plan.key(record) if is_delete else plan.row(record)
        return PreparedRow(record, table_plan, row, is_delete)

    def write(self, rows: Sequence[PreparedRow]) -> None:
        """Writes rows and commits; after an error nothing is written."""
        if self._connection is None:
            self._connection = self._database.connect()
        connection, dialect, quoting = (
            self._connection,
            self._database.dialect,
            self._database.quoting,
        )
        written: set[Target] = set()  # in this transaction
        try:
            for operation in operations(self._mapping.action, rows):
                action, target = operation.action, operation.target
                if (action, target) not in self._prepared or target in written:
                    dialect.prepare(connection, action, target, quoting)
                    self._prepared.add((action, target))
                written.add(target)
                dialect.write(connection, action, target, operation.rows, quoting)
            connection.commit()
        except Exception:
            self._roll_back(connection)
            raise

    def forget(self) -> None:
        """Reconnects later: the connection may be broken and tables may have changed."""
        self.close()
        self._table_plans.clear()
        self._last = None
        self._tables.forget()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._prepared.clear()
        if connection is not None:
            try:
                connection.close()
            except Exception as error:
                # A broken connection cannot be closed properly; nothing is lost.
                _log.debug("closing a connection to %s: %s", self._database, error)

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except Exception as error:
            _log.debug("rolling back on %s: %s", self._database, error)
            self.close()
        # The rollback removed what was prepared in the transaction.
        self._prepared.clear()

    def _find_table_plan(
        self,
        table: TableName,
        key_schema: ConnectSchema | None,
        value_schema: ConnectSchema | None,
    ) -> TablePlan | None:
        plan = plan_rows(self._mapping, key_schema, value_schema)
        if value_schema is None and self._tables.create and self._tables.columns(table) is None:
            return None  # a missing table has nothing to delete
        return self._plan_table(table, plan)

    def _plan_table(self, table: TableName, plan: RowPlan) -> TablePlan:
        columns = self._tables.columns_for(table, plan.fields)
        dialect, zone = self._database.dialect, self._database.session.zone
        conversions = [
            (position, dialect.binding(field.schema, column, zone))
            for position, (field, column) in enumerate(zip(plan.fields, columns, strict=True))
        ]
        return TablePlan(
            plan,
            Target(
                table,
                tuple(column.name for column in columns),
                plan.key_count,
                self._tables.is_view(table),
            ),
            tuple((position, convert) for position, convert in conversions if convert is not None),
        )
