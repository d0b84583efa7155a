"""PostgreSQL from Debian's package: a real server for tests and benchmarks."""

from typing import Self

import psycopg

from tests.support.database_process import DatabaseProcess
from tests.support.debian import find_program

# Debian installs the programs of each version outside of the PATH.
_FOLDERS = ("/usr/lib/postgresql/*/bin",)
_PACKAGE = "postgresql"


class PostgresServer:
    """A server on a free port, which can be killed and restarted on the same data."""

    name = "postgresql"
    user = "millstream"
    password = "secret"

    def __init__(self, *, fsync: bool = False) -> None:
        programs = {
            each: find_program(each, _PACKAGE, folders=_FOLDERS) for each in ("initdb", "postgres")
        }
        self._process = DatabaseProcess(self.name)
        self._command = [programs["postgres"], "-D", str(self._process.data)]
        self._command += ["-p", str(self._process.port), "-h", "127.0.0.1", "-k", ""]
        self._command += ["-c", f"fsync={'on' if fsync else 'off'}"]
        password_file = self._process.folder / "password"
        password_file.write_text(self.password)
        password_file.chmod(0o644)
        initdb = [programs["initdb"], "-D", str(self._process.data), "--no-sync"]
        initdb += ["-U", self.user, "--pwfile", str(password_file)]
        initdb += ["-E", "UTF8", "--locale=C.UTF-8", "-A", "scram-sha-256"]
        self._process.run(initdb)

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

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, each in its own transaction."""
        with self.connect(database) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def connect(self, database: str = "postgres") -> "psycopg.Connection[tuple[object, ...]]":
        """A driver connection with autocommit."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=database,
            autocommit=True,
            connect_timeout=10,
        )

    def create_database(self, name: str) -> None:
        """Create a database."""
        self.execute(f'CREATE DATABASE "{name}"')

    def empty_database(self, name: str) -> None:
        """Drop all objects of a database."""
        self.execute("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", database=name)

    def jdbc_url(self, database: str) -> str:
        """The JDBC URL of a database."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
