"""`millstream`: the one command."""

import sys

import click

from broker.errors import MillstreamError
from millstream.commands.broker import broker
from millstream.commands.configs import configs
from millstream.commands.consume import consume
from millstream.commands.demo import demo
from millstream.commands.groups import groups
from millstream.commands.log import log
from millstream.commands.produce import produce
from millstream.commands.registry import registry
from millstream.commands.run import run
from millstream.commands.schemas import schemas
from millstream.commands.streams import streams
from millstream.commands.topics import topics
from millstream.commands.up import up

COMMANDS = (
    up,
    broker,
    topics,
    groups,
    produce,
    consume,
    configs,
    log,
    registry,
    schemas,
    run,
    streams,
    demo,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="millstream")
def command_line() -> None:
    """Stream processing for Python people.

    Every command that talks to a cluster works on a Millstream broker and on any Kafka.
    """


for each in COMMANDS:
    command_line.add_command(each)


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
