"""`millstream groups`: list, describe with lag, delete, reset offsets."""

import click

from broker.client import admin
from broker.client.api import MemberDescription, OffsetAndMetadata
from broker.client.cluster_admin import Admin
from broker.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from millstream.commands.consume import parse_time_ms
from millstream.commands.options import (
    client_settings,
    cluster_options,
    confirm_deletion,
    deletion_arguments,
    json_option,
)
from millstream.output import Output, Row


@click.group()
def groups() -> None:
    """Manage consumer groups: list, describe, delete, reset-offsets."""


@groups.command(name="list")
@click.option("--state", "states", multiple=True, help="Only groups in this state; repeatable.")
@cluster_options
@json_option
def list_(
    states: tuple[str, ...], bootstrap: str, properties: tuple[str, ...], output: Output
) -> None:
    "List consumer groups."
    with admin(bootstrap, **client_settings(properties)) as cluster:
        listed = cluster.list_groups(states=states)
    rows = [
        {
            "group": group.group_id,
            "type": group.type,
            "protocol": group.protocol_type,
            "state": group.state,
        }
        for group in sorted(listed, key=lambda group: group.group_id)
    ]
    output.rows(rows, empty="no groups")


@groups.command()
@click.argument("name")
@cluster_options
@json_option
def describe(name: str, bootstrap: str, properties: tuple[str, ...], output: Output) -> None:
    """Show the members of group NAME, their partitions, offsets and lag."""
    with admin(bootstrap, **client_settings(properties)) as cluster:
        group = cluster.describe_groups([name])[name]
        rows = _lags(cluster, name, group.members)
    summary = {
        "group": name,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "members": len(group.members),
        "lag": sum(row["lag"] for row in rows if isinstance(row["lag"], int)),
    }
    if output.as_json:
        output.record({**summary, "partitions": rows})
        return
    output.record(summary)
    output.rows(rows, empty="no offsets committed and no partitions assigned")


def _lags(cluster: Admin, name: str, members: tuple[MemberDescription, ...]) -> list[Row]:
    owners = {tp: member for member in members for tp in member.partitions}
    committed = cluster.list_group_offsets(name).all()
    partitions = sorted({*owners, *committed})
    ends = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP))
    rows: list[Row] = []
    for tp in partitions:
        position = committed.get(tp)
        end = ends.values.get(tp)
        owner = owners.get(tp)
        known = position is not None and end is not None
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "committed": None if position is None else position.offset,
                "end": None if end is None else end.offset,
                "lag": end.offset - position.offset if known and end and position else None,
                "client": None if owner is None else owner.client_id,
                "member": None if owner is None else owner.member_id,
                "host": None if owner is None else owner.host,
            }
        )
    return rows


@groups.command()
@deletion_arguments
def delete(
    names: tuple[str, ...],
    yes: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Delete the groups NAMES and their offsets; they must have no members."""
    confirm_deletion(names, "with their offsets", yes=yes, output=output)
    with admin(bootstrap, **client_settings(properties)) as cluster:
        cluster.delete_groups(names).all()
    for name in names:
        output.done(f'group "{name}" deleted', group=name)


@groups.command(name="reset-offsets")
@click.argument("name")
@click.option("--topic", "-t", "topics", multiple=True, help="TOPIC or TOPIC:0,2; default: all.")
@click.option("--to-earliest", is_flag=True)
@click.option("--to-latest", is_flag=True)
@click.option("--to-offset", type=int)
@click.option("--shift-by", type=int, help="Shift by this many records; negative: backward.")
@click.option(
    "--to-time",
    metavar="TIME",
    help="Reset to this time: ISO 8601 or milliseconds since the epoch.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@cluster_options
@json_option
def reset_offsets(  # noqa: PLR0913 - one argument per option
    name: str,
    topics: tuple[str, ...],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_time: str | None,
    dry_run: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Reset the committed offsets of group NAME; it must have no members."""
    specified = (to_earliest, to_latest, to_offset is not None, shift_by is not None, bool(to_time))
    if sum(specified) != 1:
        raise click.UsageError(
            "use one of --to-earliest, --to-latest, --to-offset, --shift-by, --to-time"
        )
    with admin(bootstrap, **client_settings(properties)) as cluster:
        committed = cluster.list_group_offsets(name).all()
        partitions = _selected_partitions(cluster, topics, list(committed))
        starts = _offsets(cluster, partitions, EARLIEST_TIMESTAMP)
        ends = _offsets(cluster, partitions, LATEST_TIMESTAMP)
        if to_earliest:
            targets = starts
        elif to_latest:
            targets = ends
        elif to_time:
            offsets = _offsets(cluster, partitions, parse_time_ms(to_time))
            targets = {tp: ends[tp] if offsets[tp] < 0 else offsets[tp] for tp in partitions}
        elif to_offset is not None:
            targets = dict.fromkeys(partitions, to_offset)
        else:
            targets = {
                tp: committed[tp].offset + (shift_by or 0) for tp in partitions if tp in committed
            }
        moved = {tp: min(max(offset, starts[tp]), ends[tp]) for tp, offset in targets.items()}
        if not dry_run:
            positions = {tp: OffsetAndMetadata(offset) for tp, offset in moved.items()}
            cluster.alter_group_offsets(name, positions).all()
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "before": committed[tp].offset if tp in committed else None,
            "after": offset,
        }
        for tp, offset in sorted(moved.items())
    ]
    title = f'group "{name}"{", not changed (--dry-run)" if dry_run else ""}'
    output.rows(rows, title=title, empty="the group has no offsets; use --topic")


def _offsets(
    cluster: Admin, partitions: list[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, int]:
    results = cluster.list_offsets(dict.fromkeys(partitions, timestamp_ms)).all()
    return {tp: result.offset for tp, result in results.items()}


def _selected_partitions(
    cluster: Admin, topics: tuple[str, ...], committed: list[TopicPartition]
) -> list[TopicPartition]:
    """The partitions that --topic names, or all that the group has committed."""
    if not topics:
        return committed
    selected: list[TopicPartition] = []
    for text in topics:
        topic, _, numbers = text.partition(":")
        known = sorted(cluster.describe_topics([topic])[topic].partitions)
        if numbers and not all(part.isdecimal() for part in numbers.split(",")):
            raise click.UsageError(f'"{text}" is not TOPIC or TOPIC:0,2')
        requested = [int(part) for part in numbers.split(",")] if numbers else known
        for number in requested:
            if number not in known:
                raise click.UsageError(f'topic "{topic}" has no partition {number}')
        selected += [TopicPartition(topic, number) for number in requested]
    return selected
