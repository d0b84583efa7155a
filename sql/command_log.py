"""CommandLog: the topic of all statements that changed anything, in order; a restart replays it.

    key    JSON text  "stream/`ORDERS`/create"
    value  JSON       {"statement": "CREATE STREAM ...;", "streamsProperties": {...},
                       "originalProperties": {}, "schemas": {"value": "STRUCT<...>"},
                       "version": 1}

`schemas` are the columns that the statement left to a schema registry.

One partition that is never cleaned. A server that wants to write takes over the transactional id of
the topic and reads to its end first; a server that was taken over finds out when its next write is
refused, reads what it has missed and may try again. So a statement is always checked against
everything that stands before it.

The offset of a command is its sequence number, and the number in the ids of its queries.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from broker.client.administration.values import NewTopic
from broker.client.api import Producer
from broker.client.opening import Target, admin, consumer, producer
from broker.errors import BrokerError, ErrorCode, MillstreamError
from broker.model import TopicPartition
from sql.errors import SqlError

logger = logging.getLogger(__name__)

VERSION = 1
WRITE_TIMEOUT_MS = 30_000
FETCH_BYTES = 16 * 1024 * 1024
COMMAND_BYTES_MAX = 1_000_000  # below what brokers take in one batch unless told otherwise
NOTHING = -1
POLL_MS = 50  # markers of transactions move the position without waking who polls
POLL_RECORDS = 10_000
SILENT_POLLS_MAX = 600
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class CommandLogError(SqlError):
    """The topic of commands cannot be read or written."""


class TakenOver(CommandLogError):
    """Another server has written since; read what is new, and try again."""


class DamagedCommand(CommandLogError):
    """A record of the topic is no command that this version understands."""


@dataclass(frozen=True, slots=True)
class Command:
    """One statement that changed something, with the settings it was made under."""

    id: str  # stream/`NAME`/create
    statement: str
    properties: Mapping[str, object] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """A command and its place."""

    offset: int
    command: Command


def command_topic(service_id: str) -> str:
    """The name of a service's topic of commands."""
    return f"_confluent-ksql-{service_id}command_topic"


class CommandLog:
    """The commands of one service; one thread uses it at a time."""

    def __init__(self, target: Target, topic: str, *, replication_factor: int = -1) -> None:
        """Nothing is asked of the broker yet."""
        self.topic = topic
        self._target = target
        self._replication_factor = replication_factor
        self._producer: Producer | None = None
        self._next_offset = 0
        self._written = NOTHING  # the offset of the last command of our own

    def open(self) -> None:
        """Make the topic if there is none, and see that it is what it should be."""
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "min.insync.replicas": "1",
        }
        topic = NewTopic(self.topic, 1, self._replication_factor, configs)
        try:
            with admin(self._target) as administration:
                error = administration.create_topics([topic]).errors.get(self.topic)
                if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise error
                described = administration.describe_topics([self.topic])[self.topic]
        except MillstreamError as error:
            raise CommandLogError(
                f'cannot open topic "{self.topic}": {error.message}', hint=error.hint
            ) from error
        if len(described.partitions) != 1:
            raise CommandLogError(
                f'topic "{self.topic}" has {len(described.partitions)} partitions, not 1',
                hint="give the service another ksql.service.id",
            )

    @property
    def is_writer(self) -> bool:
        """Whether we wrote last, as far as is known; if not, the next write is refused."""
        return self._producer is not None

    def take_over(self) -> None:
        """Become the writer; whoever wrote before is refused from now on."""
        if self._producer is not None:
            return
        opened: Producer = producer(
            self._target,
            client_id="millstream-sql",
            transactional_id=self.topic,
            linger_ms=0,
            acks="all",
            max_block_ms=WRITE_TIMEOUT_MS,
            delivery_timeout_ms=WRITE_TIMEOUT_MS,
        )
        try:
            opened.init_transactions()
        except MillstreamError as error:
            _let_go(opened, self.topic)
            if _was_fenced(error):
                raise TakenOver(
                    f'another server has taken over topic "{self.topic}"',
                    hint="the statement was not carried out; send it again",
                ) from error
            raise CommandLogError(
                f'cannot write to topic "{self.topic}": {error.message}', hint=error.hint
            ) from error
        self._producer = opened

    def unread(self) -> Iterator[LoggedCommand]:
        """What was written since the last call; DamagedCommand at the first bad record.

        The bad record stays unread: the next call meets it again.
        """
        tp = TopicPartition(self.topic, 0)
        with consumer(
            self._target,
            client_id="millstream-sql",
            isolation_level="read_committed",
            auto_offset_reset="none",
            max_partition_fetch_bytes=FETCH_BYTES,
        ) as reader:
            reader.assign([tp])
            start = reader.beginning_offsets([tp])[tp]
            if start > self._next_offset:
                raise DamagedCommand(
                    f'topic "{self.topic}" begins at offset {start}, and commands from '
                    f"{self._next_offset} on are missing",
                    hint="the topic must keep everything: restore it from a backup",
                )
            end = reader.end_offsets([tp])[tp]
            if self._wrote_last and self._written <= end <= self.next_offset:
                return  # nothing but our own command, whose marker may not be written yet
            if end < self._next_offset:
                raise DamagedCommand(
                    f'topic "{self.topic}" ends at offset {end}, and {self._next_offset} was read',
                    hint="the topic was deleted or made anew: restore it from a backup",
                )
            reader.seek(tp, self._next_offset)
            silent = 0
            while reader.position(tp) < end:
                records = reader.poll(POLL_MS, max_records=POLL_RECORDS)
                silent = 0 if records else silent + 1
                if silent > SILENT_POLLS_MAX:
                    raise CommandLogError(f'topic "{self.topic}" was not read to its end in time')
                for record in records:
                    command = decode(record.key, record.value, self.topic, record.offset)
                    self._next_offset = record.offset + 1
                    yield LoggedCommand(record.offset, command)
            self._next_offset = max(self._next_offset, end)

    @property
    def next_offset(self) -> int:
        """Where the next command will be, as far as is known."""
        return self._next_offset + (1 if self._wrote_last else 0)

    @property
    def _wrote_last(self) -> bool:
        """Whether a marker of our own transaction comes before anything else."""
        return self._written != NOTHING and self._next_offset == self._written + 1

    def append(self, command: Command) -> int:
        """Write a command in a transaction of its own; its offset. TakenOver: read, try again.

        Nobody has written between what was read and this command, which counts as read, too.
        """
        assert self._producer is not None, "take_over comes first"
        key, value = encode(command)
        if len(key) + len(value) > COMMAND_BYTES_MAX:
            raise CommandLogError(
                f"the statement has {len(value)} bytes, and at most {COMMAND_BYTES_MAX} are kept"
            )
        try:
            self._producer.begin_transaction()
            sent = self._producer.send(self.topic, value, key, partition=0)
            self._producer.commit_transaction()
            self._written = sent.result().offset
            self._next_offset = self._written + 1
            return self._written
        except MillstreamError as error:
            self.close()
            if _was_fenced(error):
                raise TakenOver(
                    f'another server has written to topic "{self.topic}"',
                    hint="the statement was not carried out; send it again",
                ) from error
            raise CommandLogError(
                f'cannot write to topic "{self.topic}": {error.message}', hint=error.hint
            ) from error

    def close(self) -> None:
        """Let go of the producer."""
        closing, self._producer = self._producer, None
        if closing is not None:
            _let_go(closing, self.topic)


def encode(command: Command) -> tuple[bytes, bytes]:
    """The key and value of a command's record."""
    body = {
        "statement": command.statement,
        "streamsProperties": dict(command.properties),
        "originalProperties": {},
        "schemas": dict(command.schemas),
        "version": VERSION,
    }
    return json.dumps(command.id).encode(), json.dumps(body).encode()


def decode(key: bytes | None, value: bytes | None, topic: str, offset: int) -> Command:
    """The command of a record."""
    where = f'offset {offset} of topic "{topic}"'
    try:
        name = json.loads(key or b"null")
        body = json.loads(value or b"null")
    except (ValueError, RecursionError):
        raise DamagedCommand(
            f"{where} is no command: it is not JSON",
            hint="restore the topic from a backup",
        ) from None
    if not isinstance(name, str) or not isinstance(body, dict):
        raise DamagedCommand(f"{where} is no command", hint="restore the topic from a backup")
    version = body.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise DamagedCommand(
            f"{where} is a command of version {version}, and this server knows {VERSION}",
            hint="start a newer server",
        )
    statement, properties = body.get("statement"), body.get("streamsProperties")
    if not isinstance(statement, str) or not isinstance(properties, dict):
        raise DamagedCommand(
            f"{where} is a command without a statement", hint="restore the topic from a backup"
        )
    schemas = body.get("schemas") or {}
    if not isinstance(schemas, dict) or not all(isinstance(each, str) for each in schemas.values()):
        raise DamagedCommand(
            f"{where} is a command with schemas that are none",
            hint="restore the topic from a backup",
        )
    return Command(name, statement, properties, schemas)


def _was_fenced(error: BaseException) -> bool:
    """Whether another writer has begun: then nothing of ours was committed."""
    following: BaseException | None = error
    while following is not None:
        if isinstance(following, BrokerError) and following.code in FENCED:
            return True
        following = following.__cause__
    return False


def _let_go(closing: Producer, topic: str) -> None:
    try:
        closing.close(timeout_ms=0)
    except MillstreamError as error:
        # What it left open is ended by the coordinator, at the latest when the next one comes.
        logger.warning('closing the writer of topic "%s": %s', topic, error)
