"""`millstream connectors`: manage the connectors of a worker of Millstream or Kafka Connect."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from connect.client import ConnectClient
from connect.config.connector_file import INITIAL_STATES, read_connector
from millstream.commands.options import (
    CONNECT,
    confirm_deletion,
    json_option,
    key_values,
    platform_address,
)
from millstream.output import Output, Row

F = TypeVar("F", bound=Callable[..., Any])  # Any: click passes the arguments by name
# Any: Connect's responses are JSON of many shapes.
Json = Any


def worker_option(command: F) -> F:
    """`--url`: the command gets `worker`, a client."""

    def build(_: click.Context, __: click.Parameter, value: str) -> ConnectClient:
        return ConnectClient(value)

    return click.option(
        "--url",
        "worker",
        default=lambda: platform_address("connect"),
        show_default=CONNECT,
        envvar="MILLSTREAM_CONNECT",
        callback=build,
        help="The worker's REST API.",
    )(command)


def connector_options(command: F) -> F:
    """NAME, `--url` and `--json`, for commands for one connector."""
    for decorate in (json_option, worker_option, click.argument("name")):
        command = decorate(command)
    return command


@click.group()
def connectors() -> None:
    """Manage connectors: create, show, pause, restart, delete."""


@connectors.command(name="list")
@worker_option
@json_option
def list_(worker: ConnectClient, output: Output) -> None:
    """List connectors and their states."""
    rows = connector_rows(worker)
    output.rows(rows, title="connectors", empty="no connectors")


@connectors.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--replace", is_flag=True, help="Update the settings of connectors that exist.")
@worker_option
@json_option
def create(files: tuple[Path, ...], replace: bool, worker: ConnectClient, output: Output) -> None:
    """Create the connectors in FILES: JSON as for the REST API, or properties."""
    names = {state: name for name, state in INITIAL_STATES.items()}
    for file in map(read_connector, files):
        config = {**file.config, "name": file.name}
        if replace:
            worker.put_config(file.name, config)
        else:
            initial = None if file.initial_state is None else names[file.initial_state]
            worker.create(file.name, config, initial_state=initial)
        output.done(f'connector "{file.name}" created', name=file.name)


@connectors.command()
@connector_options
def status(name: str, worker: ConnectClient, output: Output) -> None:
    """Show the state of a connector and its tasks, with the errors of failed ones."""
    response = worker.status(name)
    if output.as_json:
        output.record(response)
        return
    parts = [{"part": "connector", **response["connector"]}]
    parts += [{"part": f"task {each['id']}", **each} for each in response["tasks"]]
    rows = [
        {"part": each["part"], "state": each["state"], "worker": each["worker_id"]}
        for each in parts
    ]
    output.rows(rows, title=f"{response['name']} ({response['type']})")
    for each in parts:
        if each.get("trace"):
            output.line(each, f"{each['part']}: {str(each['trace']).strip()}")


@connectors.command()
@click.option("--set", "-s", "changes", multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option("--unset", "-u", "removed", multiple=True, metavar="KEY", help="Repeatable.")
@connector_options
def config(
    changes: tuple[str, ...],
    removed: tuple[str, ...],
    name: str,
    worker: ConnectClient,
    output: Output,
) -> None:
    """Show or change the settings of a connector."""
    patch: dict[str, str | None] = {**key_values(changes), **dict.fromkeys(removed)}
    described = worker.patch_config(name, patch) if patch else worker.describe(name)
    output.record(dict(sorted(described["config"].items())), title=name)


@connectors.command()
@click.option("--tasks", is_flag=True, help="Also restart its tasks.")
@click.option("--only-failed", is_flag=True, help="Restart only failed connectors and tasks.")
@click.option("--task", type=int, metavar="NUMBER", help="Restart only this task.")
@connector_options
def restart(
    tasks: bool,
    only_failed: bool,
    task: int | None,
    name: str,
    worker: ConnectClient,
    output: Output,
) -> None:
    """Restart a connector or its tasks."""
    if task is None:
        worker.restart(name, include_tasks=tasks, only_failed=only_failed)
        output.done(f'connector "{name}" is restarting', name=name)
        return
    if tasks or only_failed:
        raise click.UsageError("--task cannot be combined with --tasks or --only-failed")
    worker.restart_task(name, task)
    output.done(f'task {task} of connector "{name}" is restarting', name=name, task=task)


@connectors.command()
@connector_options
def pause(name: str, worker: ConnectClient, output: Output) -> None:
    """Pause a connector and its tasks."""
    worker.pause(name)
    output.done(f'connector "{name}" is being paused', name=name)


@connectors.command()
@connector_options
def resume(name: str, worker: ConnectClient, output: Output) -> None:
    """Resume a paused or stopped connector."""
    worker.resume(name)
    output.done(f'connector "{name}" is being resumed', name=name)


@connectors.command()
@connector_options
def stop(name: str, worker: ConnectClient, output: Output) -> None:
    """Stop a connector and its tasks until it is resumed."""
    worker.stop(name)
    output.done(f'connector "{name}" is being stopped', name=name)


@connectors.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@worker_option
@json_option
def delete(names: tuple[str, ...], yes: bool, worker: ConnectClient, output: Output) -> None:
    """Delete connectors; their topics and offsets are kept."""
    confirm_deletion(names, "and their settings and states", yes=yes, output=output)
    for name in names:
        worker.delete(name)
        output.done(f'connector "{name}" deleted', name=name)


@connectors.command()
@click.option(
    "--all", "all_kinds", is_flag=True, help="Include converters, transforms and predicates."
)
@worker_option
@json_option
def plugins(all_kinds: bool, worker: ConnectClient, output: Output) -> None:
    """List the plugins of the worker."""
    rows = [
        {"class": each["class"], "type": each["type"], "version": each.get("version")}
        for each in worker.plugins(connectors_only=not all_kinds)
    ]
    output.rows(rows, title="plugins")


def connector_rows(worker: ConnectClient) -> list[Row]:
    """Connectors with their state, and the number of tasks in each state."""
    return [_row(worker.status(name)) for name in sorted(worker.names())]


def _row(status: Json) -> Row:
    tasks = Counter(str(each["state"]) for each in status["tasks"])
    return {
        "name": status["name"],
        "type": status["type"],
        "state": status["connector"]["state"],
        "tasks": ", ".join(f"{count} {state}" for state, count in sorted(tasks.items())) or "none",
    }
