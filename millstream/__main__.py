"""`millstream`: the one command."""

import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from broker.errors import MillstreamError, failure_text

# Where the command of each name is; it has the same name there.
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
    """The commands, each loaded when it is called: none waits for what only others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, loaded now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name]), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a pipe whose reader left is for `main`: click would call it a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderLeft from error


class ReaderLeft(Exception):
    """The reader of our output has left, as `head` does: it has all that it wanted."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="millstream")
def command_line() -> None:
    """Stream processing for Python people.

    Every command that talks to a cluster works on a Millstream broker and on any Kafka.
    """


def main() -> None:
    """Run the command; our errors become one readable text and exit code 1."""
    try:
        command_line(standalone_mode=False)
        sys.stdout.flush()  # here, where a reader that left is handled
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except (ReaderLeft, BrokenPipeError):
        _leave_quietly()
    except (MillstreamError, OSError) as error:
        click.secho("error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(failure_text(error), err=True)
        sys.exit(1)


def _leave_quietly() -> NoReturn:
    # What is still in Python's buffers goes nowhere, instead of failing again at the exit.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    sys.exit(0)


if __name__ == "__main__":
    main()
