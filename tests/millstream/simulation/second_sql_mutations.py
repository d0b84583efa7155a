"""Mutations of SQL servers that share a service, or have schemas; see mutation.py."""

from collections.abc import Iterator
from unittest.mock import patch

from broker.registry.registry import Registry
from sql.engine.commands import Commands
from sql.engine.follower import Follower
from sql.engine.launching import QueryLauncher
from tests.millstream.simulation.mutation import mutation

TWO = ("sql", "second sql")


@mutation("a server does not follow what others of its service log", needs=TWO, found_in=2)
def deaf_servers() -> Iterator[None]:
    with patch.object(Follower, "start", lambda follower: None):
        yield


@mutation("a server that has written last does not read what others log", needs=TWO, found_in=2)
def proud_writers() -> Iterator[None]:
    real = Commands._read_on

    def read_on(commands: Commands) -> None:
        if commands.log is None or commands._replaying or not commands.log.is_writer:
            real(commands)

    with patch.object(Commands, "_read_on", read_on):
        yield


@mutation("each server of a service runs a query for itself", needs=TWO, found_in=2)
def own_applications() -> Iterator[None]:
    real = QueryLauncher.application_id

    def application_id(launcher: QueryLauncher, query_id: str) -> str:
        return f"{real(launcher, query_id)}_of_{launcher.machine.host_name}"

    with patch.object(QueryLauncher, "application_id", application_id):
        yield


@mutation("the registry of a SQL server gives ids again after a restart", needs="sql", found_in=25)
def ids_again() -> Iterator[None]:
    real = Registry.start

    def start(registry: Registry) -> None:
        real(registry)
        for context in registry._state._contexts.values():
            context.max_id = max(0, context.max_id - 1)

    with patch.object(Registry, "start", start):
        yield
