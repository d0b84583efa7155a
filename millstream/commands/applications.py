"""Loads the application that a command line names: `module:name`."""

import importlib
import inspect
from collections.abc import Callable
from typing import TypeVar

import click

from broker.client.opening import Target
from broker.errors import MillstreamError
from millstream.commands.options import search_working_directory
from streams import StreamsApp, StreamsBuilder, StreamsConfig, Topology
from streams.errors import StreamsError
from streams.runtime.dead_letters import user_line

T = TypeVar("T")

# Creates the application on a broker.
AppMaker = Callable[[Target], StreamsApp]


def load(text: str) -> object:
    """Load the object `module:name`; the working directory is searched first."""
    module_name, colon, name = text.partition(":")
    if not colon or not module_name or not name:
        raise click.UsageError(f'"{text}" is not MODULE:NAME')
    search_working_directory()
    loaded: object = _call_user_code(f'module "{module_name}"', lambda: _import(module_name))
    for part in name.split("."):
        if not hasattr(loaded, part):
            raise click.UsageError(f'module "{module_name}" has no "{name}"')
        loaded = getattr(loaded, part)
    return loaded


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not name.startswith(missing.name):
            raise
        raise click.UsageError(f'no module named "{name}"') from None


def _call_user_code(description: str, run: Callable[[], T]) -> T:
    """Run user code; an error is reported with its location."""
    try:
        return run()
    except (MillstreamError, click.ClickException):
        raise
    except Exception as error:
        at = user_line(error)
        if isinstance(error, SyntaxError):
            at = f"{error.filename}:{error.lineno}"
        raise StreamsError(
            f"{description} failed: {type(error).__name__}: {error}",
            at=at,
            hint="correct it and run the command again",
        ) from error


def load_topology(text: str) -> Topology:
    """Load a topology: `module:name` is a topology, or a function that returns one."""
    topology = _topology_of(text, load(text))
    if topology is None:
        raise click.UsageError(
            f'"{text}" must be a Topology, a StreamsBuilder, or a function that returns one'
        )
    return topology


def load_app(text: str, application_id: str, settings: dict[str, str]) -> AppMaker:
    """Load a factory of the application; `module:name` is its topology or its factory.

    A factory is called as `factory(application_id=..., broker=..., **settings)`. Errors that
    do not depend on the broker are raised here.
    """
    loaded = load(text)
    topology = _topology_of(text, loaded)
    if topology is None and not callable(loaded):
        raise _no_application(text)
    StreamsConfig.of(application_id=application_id, **settings)

    def make(broker: Target) -> StreamsApp:
        # Settings are strings here; StreamsApp converts them.
        if topology is not None:
            return StreamsApp(topology, application_id=application_id, broker=broker, **settings)  # type: ignore[arg-type]
        assert callable(loaded)
        app: object = _call_user_code(
            f'"{text}"', lambda: loaded(application_id=application_id, broker=broker, **settings)
        )
        if not isinstance(app, StreamsApp):
            raise _no_application(text)
        return app

    return make


def _no_application(text: str) -> click.UsageError:
    return click.UsageError(
        f'"{text}" must be a Topology, a StreamsBuilder, or a function that returns '
        "one of them or a StreamsApp"
    )


def _topology_of(text: str, loaded: object) -> Topology | None:
    if callable(loaded) and not _needs_arguments(loaded):
        loaded = _call_user_code(f'"{text}"', loaded)
    if isinstance(loaded, StreamsBuilder):
        return loaded.build()
    return loaded if isinstance(loaded, Topology) else None


def _needs_arguments(function: object) -> bool:
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return any(
        each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        for each in parameters
    )
