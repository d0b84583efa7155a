"""`millstream topics`: create, list, describe, alter, delete."""

import click

from broker.client import admin
from broker.client.api import ConfigChange, ConfigResource, NewTopic
from broker.client.cluster_admin import Admin
from broker.errors import ErrorCode
from broker.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from millstream.commands.options import (
    client_settings,
    cluster_options,
    confirm_deletion,
    deletion_arguments,
    json_option,
    key_values,
)
from millstream.output import Output, Row


@click.group()
def topics() -> None:
    """Manage topics: create, list, describe, alter, delete."""


@topics.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--partitions", "-p", type=int, default=-1, help="Default: the broker's setting.")
@click.option(
    "--replication-factor", "-r", type=int, default=-1, help="Default: the broker's setting."
)
@click.option("--config", "-c", "configs", multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Skip topics that exist.")
@cluster_options
@json_option
def create(  # noqa: PLR0913 - one argument per option
    names: tuple[str, ...],
    partitions: int,
    replication_factor: int,
    configs: tuple[str, ...],
    if_not_exists: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Create the topics NAMES."""
    settings = key_values(configs)
    with admin(bootstrap, **client_settings(properties)) as cluster:
        new = [NewTopic(name, partitions, replication_factor, settings) for name in names]
        results = cluster.create_topics(new)
    for error in results.errors.values():
        if not (if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
            raise error
    for name, topic in results.values.items():
        output.done(
            f'topic "{name}" created with {topic.partitions} partitions',
            topic=name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
        )


@topics.command(name="list")
@click.option("--internal", is_flag=True, help="Include internal topics.")
@cluster_options
@json_option
def list_(internal: bool, bootstrap: str, properties: tuple[str, ...], output: Output) -> None:
    """List topics with their partitions and records."""
    with admin(bootstrap, **client_settings(properties)) as cluster:
        listed = cluster.list_topics(include_internal=internal)
        partitions = [
            TopicPartition(name, number)
            for name, topic in listed.items()
            for number in range(topic.partitions)
        ]
        with output.progress(f"fetching the offsets of {len(partitions)} partitions"):
            extents = _extents(cluster, partitions)
    rows = [
        {
            "topic": name,
            "partitions": topic.partitions,
            "records": sum(extents[tp][1] - extents[tp][0] for tp in extents if tp.topic == name),
            "internal": topic.is_internal,
        }
        for name, topic in sorted(listed.items())
    ]
    output.rows(rows, empty="no topics")


def _extents(
    cluster: Admin, partitions: list[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """First and next offset of partitions."""
    starts = cluster.list_offsets(dict.fromkeys(partitions, EARLIEST_TIMESTAMP)).all()
    ends = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP)).all()
    return {tp: (starts[tp].offset, ends[tp].offset) for tp in partitions}


@topics.command()
@click.argument("names", nargs=-1, required=True)
@cluster_options
@json_option
def describe(
    names: tuple[str, ...], bootstrap: str, properties: tuple[str, ...], output: Output
) -> None:
    """Show partitions, leaders, offsets and changed settings of the topics NAMES."""
    with admin(bootstrap, **client_settings(properties)) as cluster:
        described = cluster.describe_topics(names).all()
        resources = [ConfigResource("topic", name) for name in names]
        configs = cluster.describe_configs(resources).all()
        for name in names:
            topic = described[name]
            numbers = sorted(topic.partitions)
            extents = _extents(cluster, [TopicPartition(name, number) for number in numbers])
            rows: list[Row] = [
                {
                    "partition": number,
                    "leader": topic.partitions[number].leader,
                    "replicas": list(topic.partitions[number].replicas),
                    "in_sync": list(topic.partitions[number].in_sync),
                    "start_offset": extents[TopicPartition(name, number)][0],
                    "end_offset": extents[TopicPartition(name, number)][1],
                }
                for number in numbers
            ]
            changed = {
                entry.name: entry.value
                for entry in configs[ConfigResource("topic", name)].values()
                if not entry.is_default
            }
            _show(output, name, rows, changed)


def _show(output: Output, name: str, rows: list[Row], changed: dict[str, str | None]) -> None:
    if output.as_json:
        record = {"topic": name, "partitions": rows, "settings": changed}
        output.record(record)
        return
    output.rows(rows, title=f'topic "{name}"')
    if changed:
        output.record(changed, title="topic settings")


@topics.command()
@click.argument("name")
@click.option("--partitions", "-p", type=int, help="Increase the number of partitions to this.")
@click.option(
    "--config",
    "-c",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a topic setting; repeatable.",
)
@click.option(
    "--delete-config",
    "-d",
    "dropped",
    multiple=True,
    metavar="KEY",
    help="Reset a setting to its default.",
)
@cluster_options
@json_option
def alter(  # noqa: PLR0913 - one argument per option
    name: str,
    partitions: int | None,
    configs: tuple[str, ...],
    dropped: tuple[str, ...],
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Change the partitions or settings of topic NAME."""
    changes = [ConfigChange(key, value) for key, value in key_values(configs).items()]
    changes += [ConfigChange(key, operation="delete") for key in dropped]
    if partitions is None and not changes:
        raise click.UsageError("nothing to change; use --partitions, --config or --delete-config")
    with admin(bootstrap, **client_settings(properties)) as cluster:
        if partitions is not None:
            cluster.create_partitions({name: partitions}).all()
        if changes:
            cluster.alter_configs({ConfigResource("topic", name): changes}).all()
    output.done(f'topic "{name}" changed', topic=name)


@topics.command()
@deletion_arguments
def delete(
    names: tuple[str, ...],
    yes: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Delete the topics NAMES and all their records."""
    confirm_deletion(names, "and all their records", yes=yes, output=output)
    with admin(bootstrap, **client_settings(properties)) as cluster:
        cluster.delete_topics(names).all()
    for name in names:
        output.done(f'topic "{name}" deleted', topic=name)
