"""Options that commands share: the cluster and the output format."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from millstream.output import Output
from millstream.settings import PlatformSettings, load_settings

F = TypeVar("F", bound=Callable[..., Any])  # Any: click passes the arguments by name

BOOTSTRAP_TIMEOUT_MS = 2_000
DEFAULTS = PlatformSettings()
BOOTSTRAP = DEFAULTS.listen("broker")
REGISTRY = DEFAULTS.url("registry")
CONNECT = DEFAULTS.url("connect")


def platform_address(service: str) -> str:
    """The address of a service of `millstream up`, from the same file and variables."""
    settings = load_settings({}, environment=os.environ)
    return settings.listen(service) if service == "broker" else settings.url(service)


def json_option(command: F) -> F:
    """`--json`: the command gets `output`."""

    def build(_: click.Context, __: click.Parameter, value: bool) -> Output:
        return Output(as_json=value)

    return click.option(
        "--json", "output", is_flag=True, callback=build, help="Print JSON instead of tables."
    )(command)


def cluster_options(command: F) -> F:
    """`--bootstrap` and `-X`: the command gets `bootstrap` and `properties`."""
    command = click.option(
        "--property",
        "-X",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A client setting, by Kafka's name, such as security.protocol=SSL; repeatable.",
    )(command)
    return click.option(
        "--bootstrap",
        "-b",
        default=lambda: platform_address("broker"),
        show_default=BOOTSTRAP,
        envvar="MILLSTREAM_BOOTSTRAP",
        metavar="HOST:PORT,...",
        help="The cluster: Millstream or Kafka.",
    )(command)


def deletion_arguments(command: F) -> F:
    """NAMES, `--yes`, the cluster's options and `--json`, for commands that delete."""
    for decorate in (
        json_option,
        cluster_options,
        click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation."),
        click.argument("names", nargs=-1, required=True),
    ):
        command = decorate(command)
    return command


def confirm_deletion(names: tuple[str, ...], details: str, *, yes: bool, output: Output) -> None:
    """Ask before names are deleted, unless `--yes` was used or there is no terminal."""
    if not yes and not output.as_json:
        click.confirm(f"Delete {', '.join(names)} {details}?", abort=True)


def client_settings(properties: tuple[str, ...]) -> dict[str, Any]:
    """`-X key=value` as keyword arguments of clients, which convert them to their types.

    Values stay strings, because 0123 and true may be passwords. Commands do not wait long for a
    broker that does not respond, unless `-X bootstrap.timeout.ms` is set.
    """
    given = {name.replace(".", "_"): value for name, value in _pairs(properties)}
    return {"bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS, **given}


def key_values(pairs: tuple[str, ...]) -> dict[str, str]:
    """`key=value` strings as a dictionary; a string without `=` is a usage error."""
    return {name: value.strip() for name, value in _pairs(pairs)}


def _pairs(pairs: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f'"{pair}" is not KEY=VALUE')
        yield name.strip(), value


def allowed_hosts_option(command: F) -> F:
    """`--allowed-hosts`: the command gets `allowed_hosts`."""
    return click.option(
        "--allowed-hosts",
        default=lambda: load_settings({}, environment=os.environ).allowed_hosts,
        show_default="from the settings",
        metavar="NAME,...",
        help="Additional host names under which clients may reach this service; * allows any.",
    )(command)


def registry_url_option(command: F) -> F:
    """`--registry`: the command gets `registry`, the address of a schema registry."""
    return click.option(
        "--registry",
        "-R",
        default=lambda: platform_address("registry"),
        show_default=REGISTRY,
        envvar="MILLSTREAM_REGISTRY",
        metavar="URL",
        help="The schema registry for the format `registry`.",
    )(command)


def search_working_directory() -> None:
    """Search the working directory for modules first, as `python -m` does."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
