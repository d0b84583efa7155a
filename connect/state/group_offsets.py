"""Offsets of sink connectors, which are those of their consumer groups.

    {"partition": {"kafka_topic": "orders", "kafka_partition": 3}, "offset": {"kafka_offset": 42}}

An offset of null resets the partition: it is read again according to auto.offset.reset.
"""

from collections.abc import Mapping, Sequence

from broker.client.api import OffsetAndMetadata
from broker.client.cluster_admin import Admin
from broker.errors import BrokerError, ErrorCode
from broker.java.number_text import parse_integer
from broker.model import TopicPartition
from connect.errors import BadRequest, ConnectError

TOPIC = "kafka_topic"
PARTITION = "kafka_partition"
OFFSET = "kafka_offset"
LONG_MAX = 2**63 - 1
HAS_MEMBERS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    }
)

# partition and offset as in the REST API.
ShownOffset = tuple[Mapping[str, object], Mapping[str, object] | None]


def group_of(name: str, config: Mapping[str, str | None]) -> str:
    """The consumer group of a sink connector."""
    return config.get("consumer.override.group.id") or f"connect-{name}"


def list_offsets(admin: Admin, group_id: str) -> list[ShownOffset]:
    """The committed offsets of the group, by topic and partition; none if it does not exist."""
    try:
        found = admin.list_group_offsets(group_id)
    except BrokerError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return []
        raise
    return [
        ({TOPIC: tp.topic, PARTITION: tp.partition}, {OFFSET: found.values[tp].offset})
        for tp in sorted(found.values)
    ]


def parse_offsets(
    offsets: Sequence[tuple[Mapping[str, object] | None, Mapping[str, object] | None]],
) -> dict[TopicPartition, int | None]:
    """The offsets of a request; BadRequest, in Kafka's words, if they are invalid."""
    return {_partition(partition): _offset(offset) for partition, offset in offsets}


def alter_offsets(
    admin: Admin, group_id: str, offsets: Mapping[TopicPartition, int | None]
) -> None:
    """Commit offsets for a group without members, and delete those that are None."""
    wanted = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items() if offset is not None}
    forgotten = [tp for tp, offset in offsets.items() if offset is None]
    try:
        if wanted:
            admin.alter_group_offsets(group_id, wanted).all()
        if forgotten:
            admin.delete_group_offsets(group_id, forgotten).all()
    except BrokerError as error:
        raise _refused("alter", group_id, error) from error


def reset_offsets(admin: Admin, group_id: str) -> None:
    """Delete the group with all its offsets, if it exists."""
    try:
        admin.delete_groups([group_id]).all()
    except BrokerError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise _refused("reset", group_id, error) from error


def _refused(verb: str, group_id: str, error: BrokerError) -> ConnectError:
    if error.code in HAS_MEMBERS:
        return ConnectError(
            f'cannot {verb} the offsets of group "{group_id}": it has members',
            hint="tasks of the connector are still running: retry when they have stopped",
        )
    return ConnectError(
        f'cannot {verb} the offsets of group "{group_id}": {error.message}', hint=error.hint
    )


def _partition(partition: Mapping[str, object] | None) -> TopicPartition:
    if partition is None:
        raise BadRequest("The partition for a sink connector offset cannot be null or missing")
    if TOPIC not in partition or PARTITION not in partition:
        raise BadRequest(
            "The partition for a sink connector offset must contain the keys "
            f"'{TOPIC}' and '{PARTITION}'"
        )
    if partition[TOPIC] is None:
        raise BadRequest("Kafka topic names must be valid strings and may not be null")
    return TopicPartition(str(partition[TOPIC]), _number("partition", partition[PARTITION]))


def _offset(offset: Mapping[str, object] | None) -> int | None:
    if offset is None:
        return None
    if OFFSET not in offset:
        raise BadRequest(
            f"The offset for a sink connector should either be null or contain the key '{OFFSET}'"
        )
    return _number("offset", offset[OFFSET])


def _number(what: str, value: object) -> int:
    """A partition or an offset, as a number or a string."""
    text = "null" if value is None else str(value)
    try:
        number = parse_integer(text, -LONG_MAX, LONG_MAX)
    except ValueError:
        raise BadRequest(
            f"Failed to parse the following Kafka {what} value in the provided offsets: "
            f"'{text}'. {what.capitalize()} values for sink connectors need to be integers."
        ) from None
    if number < 0:
        raise BadRequest(f"a Kafka {what} cannot be negative, but it is {number}")
    return number
