"""The `millstream` command."""

import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from broker.errors import MillstreamError, failure_text

# The module of each command; its function has the name of the command.
COMMANDS = {
    "up": "millstream.commands.up",
    "broker": "millstream.commands.broker",
    "topics": "millstream.commands.topics",
    "groups": "millstream.commands.groups",
    "produce": "millstream.commands.produce",
    "consume": "millstream.commands.consume",
    "configs": "millstream.commands.configs",
    "log": "millstream.commands.log",
    "registry": "millstream.commands.registry",
    "schemas": "millstream.commands.schemas",
    "run": "millstream.commands.run",
    "streams": "millstream.commands.streams",
    "demo": "millstream.commands.demo",
    "sql": "millstream.commands.sql",
    "connect": "millstream.commands.connect",
    "connectors": "millstream.commands.connectors",
    "status": "millstream.commands.status",
    "doctor": "millstream.commands.doctor",
    "simulate": "millstream.commands.simulate",
}


class Commands(click.Group):
    """Loads the module of a command when the command is called, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name]), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a closed pipe is handled by `main`, because click would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeClosed from error


class PipeClosed(Exception):
    """The reader of the output has closed the pipe, as `head` does."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="millstream")
def command_line() -> None:
    """Stream processing for Python.

    Every command for a cluster works with Millstream brokers and with any Kafka cluster.
    """


def main() -> None:
    """Run the command; a MillstreamError is printed, and the exit code is 1."""
    try:
        command_line(standalone_mode=False)
        sys.stdout.flush()  # here, so that a closed pipe is handled below
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except (PipeClosed, BrokenPipeError):
        _exit_quietly()
    except (MillstreamError, OSError) as error:
        click.secho("error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(failure_text(error), err=True)
        sys.exit(1)


def _exit_quietly() -> NoReturn:
    # Discards what is still in Python's buffers: flushing it at the exit would fail again.
    with open(os.devnull, "wb") as devnull:
        os.dup2(devnull.fileno(), sys.stdout.fileno())
    sys.exit(0)


if __name__ == "__main__":
    main()
