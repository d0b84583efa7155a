"""Options of the commands for the whole platform: addresses and settings of its services."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import click

from millstream.commands.options import DEFAULTS, key_values
from millstream.settings import FILE, PORTS, load_settings, settings_by_service


def platform_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--config`, `--data-dir`, ports and `--set`: the command gets `settings`."""

    @functools.wraps(command)
    def with_settings(
        config: Path | None, service_settings: tuple[str, ...], **given: object
    ) -> None:
        flags = {key: given.pop(key.replace("-", "_")) for key in FLAGS}
        settings = load_settings(
            {**flags, **settings_by_service(key_values(service_settings))},
            environment=os.environ,
            file=config,
        )
        command(settings=settings, **given)

    decorated: Callable[..., None] = with_settings
    for decorate in reversed(OPTIONS):
        decorated = decorate(decorated)
    return decorated


def _port_help(service: str) -> str:
    return f"Port of the {service} service; 0: any free port.  [default: {PORTS[service]}]"


OPTIONS = (
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help=f"The settings file.  [default: {FILE}, if it exists]",
    ),
    click.option("--data-dir", "-d", help=f"The data directory.  [default: {DEFAULTS.data_dir}]"),
    click.option("--host", help=f"Address to listen on.  [default: {DEFAULTS.host}]"),
    click.option(
        "--allowed-hosts",
        metavar="NAME,...",
        help="Additional host names under which clients may reach the services over "
        "HTTP; * allows any.",
    ),
    click.option(
        "--port-base",
        type=int,
        help="The services use this port and the next three; 0: any free ports.",
    ),
    *(click.option(f"--{name}-port", type=int, help=_port_help(name)) for name in PORTS),
    click.option(
        "--set",
        "-s",
        "service_settings",
        multiple=True,
        metavar="SERVICE.NAME=VALUE",
        help="A setting of the broker, connect or sql service; repeatable.",
    ),
)
FLAGS = ("data-dir", "host", "allowed-hosts", "port-base", *(f"{name}-port" for name in PORTS))
