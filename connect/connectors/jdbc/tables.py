"""TableName: the qualified name of a table, its quoting, and lists of tables in task settings."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_QUOTED = re.compile(r'"((?:[^"]|"")*)"([.,]?)')


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table; MariaDB has catalogs but no schemas, SQLite has neither."""

    catalog: str | None
    schema: str | None
    name: str

    @property
    def parts(self) -> list[str]:
        """The names from the outermost to the table's own."""
        return [part for part in (self.catalog, self.schema, self.name) if part is not None]

    @property
    def full_name(self) -> str:
        """The name in offsets: db.schema.table, without quotes."""
        return ".".join(self.parts)

    def __str__(self) -> str:
        return self.full_name


@dataclass(frozen=True, slots=True)
class Quoting:
    """How identifiers are quoted in statements."""

    sign: str
    always: bool = True

    def name(self, name: str) -> str:
        """One identifier."""
        if not self.always:
            return name
        return f"{self.sign}{name.replace(self.sign, self.sign * 2)}{self.sign}"

    def table(self, table: TableName) -> str:
        """A table with its catalog and schema, if it has them."""
        return ".".join(map(self.name, table.parts))

    def names(self, names: Iterable[str]) -> str:
        """Several identifiers, separated by commas."""
        return ", ".join(map(self.name, names))


def list_tables(tables: Sequence[TableName]) -> str:
    """Tables as one string, for a task's configuration."""
    quoting = Quoting('"')
    return ",".join(".".join(quoting.name(part or "") for part in _all_parts(t)) for t in tables)


def read_table_list(text: str) -> list[TableName]:
    """Parse the string of `list_tables`."""
    tables, parts = [], []
    for quoted, separator in _QUOTED.findall(text):
        parts.append(quoted.replace('""', '"'))
        if separator != ".":
            catalog, schema, name = parts
            tables.append(TableName(catalog or None, schema or None, name))
            parts = []
    return tables


def _all_parts(table: TableName) -> tuple[str | None, str | None, str]:
    return table.catalog, table.schema, table.name
