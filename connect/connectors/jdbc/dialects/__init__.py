"""The supported databases; the driver of a database is imported on first use."""

from importlib import import_module

from connect.connectors.jdbc.dialects.dialect import Dialect
from connect.errors import ConfigError

# The class of each dialect, by its name in addresses.
_MODULES = {
    "postgres": ("connect.connectors.jdbc.dialects.postgres", "PostgresDialect"),
    "mariadb": ("connect.connectors.jdbc.dialects.mariadb", "MariadbDialect"),
    "sqlite": ("connect.connectors.jdbc.dialects.sqlite", "SqliteDialect"),
}
# The extra of the package that installs the driver.
_EXTRAS = {"postgres": "postgres", "mariadb": "mysql", "sqlite": "sqlite"}
# The values of `dialect.name`, in lower case.
_NAMES = {
    "postgresqldatabasedialect": "postgres",
    "mysqldatabasedialect": "mariadb",
    "mariadbdatabasedialect": "mariadb",
    "sqlitedatabasedialect": "sqlite",
}


def load_dialect(name: str) -> Dialect:
    """The dialect of an address; ConfigError if its driver is not installed."""
    module, class_name = _MODULES[name]
    try:
        dialect: Dialect = getattr(import_module(module), class_name)()
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'The database "{name}" needs the package {error.name}, which is not installed',
            hint=f"pip install 'millstream[{_EXTRAS[name]}]'",
        ) from None
    return dialect


def dialect_of_setting(text: str) -> str | None:
    """The dialect that `dialect.name` selects; None if the URL does."""
    if not text:
        return None
    result = _NAMES.get(text.lower())
    if result is None:
        known = "PostgreSqlDatabaseDialect, MySqlDatabaseDialect, SqliteDatabaseDialect"
        raise ConfigError(
            f"Invalid value {text} for configuration dialect.name", hint=f"one of {known}"
        )
    return result
