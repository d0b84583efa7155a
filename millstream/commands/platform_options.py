"""Options of the commands about the whole platform: where its services are, what they are told."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import click

from millstream.commands.options import USUAL, key_values
from millstream.settings import FILE, PORTS, load_settings, of_services


def platform_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--config`, `--data-dir`, ports and `--set`: the command gets `settings`."""

    @functools.wraps(command)
    def with_settings(config: Path | None, told: tuple[str, ...], **given: object) -> None:
        flags = {key: given.pop(key.replace("-", "_")) for key in FLAGS}
        settings = load_settings(
            {**flags, **of_services(key_values(told))}, environment=os.environ, file=config
        )
        command(settings=settings, **given)

    decorated: Callable[..., None] = with_settings
    for decorate in reversed(OPTIONS):
        decorated = decorate(decorated)
    return decorated


def _usual(service: str) -> str:
    return f"Of the {service} service; 0: any.  [default: {PORTS[service]}]"


OPTIONS = (
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help=f"The file of settings.  [default: {FILE}, if it is there]",
    ),
    click.option("--data-dir", "-d", help=f"Keeps all.  [default: {USUAL.data_dir}]"),
    click.option("--host", help=f"Address to listen on.  [default: {USUAL.host}]"),
    click.option(
        "--allowed-hosts",
        metavar="NAME,...",
        help="More host names under which clients may reach the services over HTTP; * is any.",
    ),
    click.option(
        "--port-base", type=int, help="Ports are this and the next three; 0: any free ones."
    ),
    *(click.option(f"--{name}-port", type=int, help=_usual(name)) for name in PORTS),
    click.option(
        "--set",
        "-s",
        "told",
        multiple=True,
        metavar="SERVICE.NAME=VALUE",
        help="A setting of broker, connect or sql under its own name; repeatable.",
    ),
)
FLAGS = ("data-dir", "host", "allowed-hosts", "port-base", *(f"{name}-port" for name in PORTS))
