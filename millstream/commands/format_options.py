"""The options of `produce` and `consume` for the formats of keys and values."""

import click

from millstream.commands import formats
from millstream.commands.options import F, registry_url_option


def format_options(command: F) -> F:
    """Add --key-format, --format and --registry."""
    names = click.Choice(formats.NAMES)
    command = registry_url_option(command)
    command = click.option(
        "--format",
        "-F",
        "value_format",
        type=names,
        default="string",
        help="The format of values.",
    )(command)
    return click.option("--key-format", type=names, default="string", help="The format of keys.")(
        command
    )
