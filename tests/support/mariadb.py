"""MariaDB from Debian's package: a real server for tests and benchmarks."""

from typing import Self

import pymysql
from pymysql.connections import Connection

from tests.support.database_process import DatabaseProcess
from tests.support.debian import find_program

_FOLDERS = ("/usr/sbin",)
# Only the programs; the full package would start a service.
_PACKAGE = "mariadb-server-core"


class MariadbServer:
    """A server on a free port, which can be killed and restarted on the same data."""

    name = "mariadb"
    user = "millstream"
    password = "secret"

    def __init__(self, *, fsync: bool = False) -> None:
        server = find_program("mariadbd", _PACKAGE, folders=_FOLDERS)
        install = find_program("mariadb-install-db", _PACKAGE)
        find_program("my_print_defaults", "mariadb-client")  # used by the installer
        self._process = DatabaseProcess(self.name)
        folder = self._process.folder
        # A folder of its own for temporary tables: a server removes all of them when it starts.
        common = ["--no-defaults", f"--datadir={self._process.data}", f"--tmpdir={folder}"]
        # The first start creates the account: the installer cannot create one with a password.
        account = f"'{self.user}'@'127.0.0.1'"
        accounts = folder / "accounts.sql"
        accounts.write_text(
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO {account};\n"
        )
        accounts.chmod(0o644)
        self._command = [server, *common, f"--port={self._process.port}"]
        self._command += ["--bind-address=127.0.0.1", f"--socket={folder / 'socket'}"]
        self._command += [f"--init-file={accounts}", "--character-set-server=utf8mb4"]
        if not fsync:
            self._command += ["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync"]
        self._process.run([install, *common, "--auth-root-authentication-method=normal"])

    @property
    def port(self) -> int:
        return self._process.port

    def start(self) -> Self:
        """Start or restart the server, and wait until it responds."""
        self._process.start(self._command, self._answers)
        return self

    def kill(self) -> None:
        """Kill the server and all connections; the data is not removed."""
        self._process.kill()

    def close(self) -> None:
        """Kill the server and remove its data."""
        self._process.close()

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Run statements, each in its own transaction."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def connect(self, database: str | None = None) -> "Connection":
        """A driver connection with autocommit."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            password=self.password,
            database=database,
            autocommit=True,
            charset="utf8mb4",
            connect_timeout=10,
            ssl_disabled=True,
        )

    def create_database(self, name: str) -> None:
        """Create a database."""
        self.execute(f"CREATE DATABASE `{name}`")

    def empty_database(self, name: str) -> None:
        """Drop all objects of a database."""
        self.execute(f"DROP DATABASE `{name}`")
        self.create_database(name)

    def jdbc_url(self, database: str) -> str:
        """The JDBC URL of a database."""
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
