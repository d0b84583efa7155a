"""Address: the database of `connection.url`, in the syntax of JDBC or of SQLAlchemy.

jdbc:postgresql://host:5432/db?sslmode=require      postgresql+psycopg://user:secret@host/db
jdbc:mysql://host:3306/db, jdbc:mariadb://host/db   mysql://..., mariadb+pymysql://...
jdbc:sqlite:/folder/file.db                         sqlite:////folder/file.db
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from connect.errors import ConfigError

POSTGRES: Final = "postgres"
MARIADB: Final = "mariadb"
SQLITE: Final = "sqlite"

_DIALECTS = {
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
    "mysql": MARIADB,
    "mariadb": MARIADB,
    "sqlite": SQLITE,
}
_PORTS = {POSTGRES: 5432, MARIADB: 3306, SQLITE: 0}
_HINT = "for example jdbc:postgresql://localhost:5432/db, jdbc:mysql://... or jdbc:sqlite:file.db"
_JDBC = "jdbc:"


@dataclass(frozen=True, slots=True)
class Address:
    """One database: a server and a database name, or a file."""

    dialect: str
    database: str
    options: Mapping[str, str]
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""

    def __str__(self) -> str:
        """Without the password."""
        if self.dialect == SQLITE:
            return f"sqlite:{self.database}"
        return f"{self.dialect}://{self.host}:{self.port}/{self.database}"


def parse_address(url: str) -> Address:
    """Parse a URL; ConfigError if the database is not supported."""
    is_jdbc = url.startswith(_JDBC)
    text = url.removeprefix(_JDBC)
    scheme, colon, rest = text.partition(":")
    dialect = _DIALECTS.get(scheme.partition("+")[0].lower())
    if dialect is None or not colon:
        raise ConfigError(f"Invalid value {url} for configuration connection.url", hint=_HINT)
    if dialect == SQLITE:
        return _file_address(rest, is_jdbc=is_jdbc)
    if not rest.startswith("//"):
        rest = f"//localhost/{rest.removeprefix('/')}"  # jdbc:postgresql:db
    return _server_address(dialect, url, rest)


def _file_address(rest: str, *, is_jdbc: bool) -> Address:
    path, _, query = rest.partition("?")
    if not is_jdbc:
        path = path.removeprefix("///")
    return Address(SQLITE, path or ":memory:", dict(parse_qsl(query)))


def _server_address(dialect: str, url: str, rest: str) -> Address:
    try:
        split = urlsplit(rest)
        port = split.port or _PORTS[dialect]
    except ValueError as error:
        wrong = f"Invalid value {url} for configuration connection.url: {error}"
        raise ConfigError(wrong, hint=_HINT) from None
    options = dict(parse_qsl(split.query, keep_blank_values=True))
    return Address(
        dialect,
        unquote(split.path.removeprefix("/")),
        options,
        split.hostname or "localhost",
        port,
        unquote(split.username or "") or options.pop("user", ""),
        unquote(split.password or "") or options.pop("password", ""),
    )
