"""`millstream`: the one command."""

import sys
from importlib import import_module

import click

from broker.errors import MillstreamError

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
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except (MillstreamError, OSError) as error:
        click.secho("error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(str(error), err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
