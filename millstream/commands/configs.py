"""`millstream configs`: settings of topics and brokers."""

import click

from broker.client import admin
from broker.client.api import ConfigChange, ConfigEntry, ConfigResource
from millstream.commands.options import (
    client_settings,
    cluster_options,
    json_option,
    key_values,
)
from millstream.output import Output

KINDS = ("topic", "broker", "group")


@click.group()
def configs() -> None:
    """Describe and alter settings of topics and brokers."""


@configs.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--all", "-a", "everything", is_flag=True, help="Include settings with default values."
)
@cluster_options
@json_option
def describe(
    kind: str,
    name: str,
    everything: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Show the settings of KIND NAME; without --all only those that were changed."""
    resource = ConfigResource(kind, name)
    with admin(bootstrap, **client_settings(properties)) as cluster:
        entries = cluster.describe_configs([resource])[resource]
    rows = [
        {
            "setting": entry.name,
            "value": entry.value,
            "source": entry.source,
            "read_only": entry.is_read_only,
        }
        for entry in sorted(entries.values(), key=lambda entry: entry.name)
        if everything or _is_set(kind, entry)
    ]
    output.rows(rows, title=f'{kind} "{name}"', empty="all settings have default values")


def _is_set(kind: str, entry: ConfigEntry) -> bool:
    """Whether the setting was changed: for a broker in its file, otherwise by `alter`."""
    return entry.source != "default" if kind == "broker" else not entry.is_default


@configs.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--set", "-s", "added", multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option("--append", multiple=True, metavar="KEY=VALUE", help="Add a value to a list.")
@click.option("--subtract", multiple=True, metavar="KEY=VALUE", help="Remove a value from a list.")
@click.option(
    "--delete", "-d", "dropped", multiple=True, metavar="KEY", help="Reset to the default."
)
@click.option("--dry-run", is_flag=True, help="Only check the changes.")
@cluster_options
@json_option
def alter(  # noqa: PLR0913 - one argument per option
    kind: str,
    name: str,
    added: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    dropped: tuple[str, ...],
    dry_run: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Change settings of KIND NAME; the changes take effect immediately."""
    changes = [
        ConfigChange(key, value, operation)
        for operation, pairs in (("set", added), ("append", append), ("subtract", subtract))
        for key, value in key_values(pairs).items()
    ]
    changes += [ConfigChange(key, operation="delete") for key in dropped]
    if not changes:
        raise click.UsageError("nothing to change; use --set, --append, --subtract or --delete")
    with admin(bootstrap, **client_settings(properties)) as cluster:
        cluster.alter_configs({ConfigResource(kind, name): changes}, validate_only=dry_run).all()
    verb = "would be changed" if dry_run else "changed"
    output.done(f'{len(changes)} settings of {kind} "{name}" {verb}', changes=len(changes))
