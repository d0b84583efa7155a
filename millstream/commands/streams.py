"""`millstream streams`: reset an application, describe a topology."""

import re
import time
from datetime import timedelta

import click

from broker.client import admin
from broker.client.api import OffsetAndMetadata
from broker.client.cluster_admin import Admin
from broker.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from millstream.commands.applications import load_topology
from millstream.commands.consume import parse_time_ms
from millstream.commands.options import client_settings, cluster_options, json_option
from millstream.output import Output, Row

INTERNAL_ENDINGS = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
INTERNAL_PARTS = re.compile(r"-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic$")
DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)

Offsets = dict[TopicPartition, int]


@click.group()
def streams() -> None:
    """Manage streams applications: reset, describe."""


@streams.command()
@click.argument("application")
@json_option
def describe(application: str, output: Output) -> None:
    """Print the topology of APPLICATION, given as module:name."""
    text = load_topology(application).describe()
    output.line({"topology": text}, text)


@streams.command()
@click.option(
    "--application-id", required=True, help="The application id, which is also the id of its group."
)
@click.option(
    "--input-topics",
    "inputs",
    multiple=True,
    help="TOPIC,...: the input topics whose offsets are reset.",
)
@click.option(
    "--internal-topics",
    "internals",
    multiple=True,
    help="TOPIC,...: the internal topics to delete. Default: all.",
)
@click.option("--to-earliest", "position", flag_value="earliest", help="The default.")
@click.option("--to-latest", "position", flag_value="latest")
@click.option("--to-offset", type=int)
@click.option(
    "--to-datetime",
    metavar="TIME",
    help="Reset to this time: ISO 8601 or milliseconds since the epoch.",
)
@click.option(
    "--by-duration", metavar="PnDTnHnMnS", help="Reset to this duration before now, e.g. PT1H."
)
@click.option("--shift-by", type=int, help="Shift by this many records; negative: backward.")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@click.option("--force", is_flag=True, help="Remove members that are still in the group.")
@cluster_options
@json_option
def reset(  # noqa: PLR0913 - one argument per option
    application_id: str,
    inputs: tuple[str, ...],
    internals: tuple[str, ...],
    position: str | None,
    to_offset: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    shift_by: int | None,
    dry_run: bool,
    force: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Reset an application: reset its input offsets and delete its internal topics.

    All instances must be stopped. Local state and output topics are not changed: also delete the
    state directories, or call StreamsApp.clean_up() before the next start.
    """
    specified = {
        name: value
        for name, value in (
            ("position", position),
            ("offset", to_offset),
            ("time", to_datetime),
            ("duration", by_duration),
            ("shift", shift_by),
        )
        if value is not None
    }
    if len(specified) > 1:
        raise click.UsageError(
            "use only one of --to-earliest, --to-latest, --to-offset, --to-datetime, "
            "--by-duration, --shift-by"
        )
    kind, value = next(iter(specified.items()), ("position", "earliest"))
    with admin(bootstrap, **client_settings(properties)) as cluster:
        to_delete = _internal_topics(cluster, application_id, _names(internals))
        partitions = _partitions(cluster, _names(inputs))
        _remove_members(cluster, application_id, force=force, dry_run=dry_run)
        before = cluster.list_group_offsets(application_id).all()
        committed = {tp: item.offset for tp, item in before.items()}
        new_offsets = _new_offsets(cluster, partitions, committed, kind, value)
        if not dry_run:
            if new_offsets:
                positions = {tp: OffsetAndMetadata(offset) for tp, offset in new_offsets.items()}
                cluster.alter_group_offsets(application_id, positions).all()
            if to_delete:
                cluster.delete_topics(to_delete).all()
    _show(output, application_id, committed, new_offsets, to_delete, dry_run=dry_run)


def _names(texts: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _internal_topics(cluster: Admin, application_id: str, named: list[str]) -> list[str]:
    """The internal topics of the application: those named, or all."""
    known = [
        name
        for name in sorted(cluster.list_topics())
        if name.startswith(f"{application_id}-")
        and (name.endswith(INTERNAL_ENDINGS) or INTERNAL_PARTS.search(name))
    ]
    unknown = [name for name in named if name not in known]
    if unknown:
        raise click.UsageError(
            f'"{unknown[0]}" is not an internal topic of "{application_id}"; '
            f"its internal topics are: {', '.join(known) or 'none'}"
        )
    return named or known


def _partitions(cluster: Admin, topics: list[str]) -> list[TopicPartition]:
    known = cluster.list_topics()
    for topic in topics:
        if topic not in known:
            raise click.UsageError(f'input topic "{topic}" does not exist')
    return [
        TopicPartition(topic, number)
        for topic in topics
        for number in range(known[topic].partitions)
    ]


def _remove_members(cluster: Admin, group_id: str, *, force: bool, dry_run: bool) -> None:
    if all(group.group_id != group_id for group in cluster.list_groups()):
        return
    members = cluster.describe_groups([group_id])[group_id].members
    if not members:
        return
    if not force:
        raise click.ClickException(
            f'"{group_id}" still has members ({len(members)}): stop all instances '
            "first, or use --force if they have stopped but their sessions have not "
            "timed out"
        )
    if not dry_run:
        cluster.remove_group_members(group_id, [member.member_id for member in members]).all()


def _new_offsets(
    cluster: Admin,
    partitions: list[TopicPartition],
    committed: Offsets,
    kind: str,
    value: object,
) -> Offsets:
    """The new offset of each partition, within its log."""
    starts = _offsets(cluster, partitions, EARLIEST_TIMESTAMP)
    ends = _offsets(cluster, partitions, LATEST_TIMESTAMP)
    if kind == "position":
        return ends if value == "latest" else starts
    if kind == "offset":
        offsets = dict.fromkeys(partitions, int(str(value)))
    elif kind == "shift":
        shift = int(str(value))
        offsets = {tp: committed.get(tp, starts[tp]) + shift for tp in partitions}
    else:
        moment_ms = parse_time_ms(str(value)) if kind == "time" else _ago_ms(str(value))
        by_time = _offsets(cluster, partitions, moment_ms)
        offsets = {tp: ends[tp] if by_time[tp] < 0 else by_time[tp] for tp in partitions}
    return {tp: min(max(offset, starts[tp]), ends[tp]) for tp, offset in offsets.items()}


def _offsets(cluster: Admin, partitions: list[TopicPartition], timestamp_ms: int) -> Offsets:
    results = cluster.list_offsets(dict.fromkeys(partitions, timestamp_ms)).all()
    return {tp: result.offset for tp, result in results.items()}


def _ago_ms(text: str) -> int:
    match = DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise click.UsageError(f'"{text}" is not a valid duration; use for example P1DT2H or PT30M')
    parts = {name: float(number) for name, number in match.groupdict().items() if number}
    return int(time.time() * 1000 - timedelta(**parts) / timedelta(milliseconds=1))


def _show(
    output: Output,
    application_id: str,
    committed: Offsets,
    new_offsets: Offsets,
    deleted: list[str],
    *,
    dry_run: bool,
) -> None:
    rows: list[Row] = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "before": committed.get(tp),
            "after": offset,
        }
        for tp, offset in sorted(new_offsets.items())
    ]
    if output.as_json:
        output.record({"offsets": rows, "deleted_topics": deleted, "dry_run": dry_run})
        return
    remark = ", not changed (--dry-run)" if dry_run else ""
    output.rows(rows, title=f'application "{application_id}"{remark}', empty="no input topics")
    output.rows(
        [{"topic": name} for name in deleted],
        title=f"internal topics {'to delete' if dry_run else 'deleted'}",
        empty="no internal topics",
    )
