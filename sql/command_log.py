"""CommandLog: the topic of all statements that changed anything, in order; restarts replay it.

    key    JSON string  "stream/`ORDERS`/create"
    value  JSON         {"statement": "CREATE STREAM ...;",
                         "streamsProperties": {...}, "originalProperties": {...},
                         "schemas": {"value": "STRUCT<...>"}, "plan": {...}, "version": 2}

`streamsProperties` are the settings of the session, `originalProperties` those of the server that a
running query keeps, `schemas` the columns from a schema registry. `plan` is the plan of the
statement (engine/logged_plans.py); a plan of more than PLAN_BYTES_PLAIN is {"zlib": "<base64>"}. A
restart executes the plan, and never plans a statement again.

Commands of version 1 have no plan. The first server that replays them plans them with its own
settings, and appends the plans as commands with "pins": the offset of the command. A command that
is pinned is replayed with the plan of its pin; the pin itself has no effect.

The topic has one partition without retention. A server that wants to write initializes the
transactional id of the topic and reads to its end first; a fenced server detects it when its next
write is refused, reads what it has missed and may retry. So a statement is always checked against
all commands before it.

The offset of a command is its sequence number, and the number in the ids of its queries.

The config topic of headless servers has the same records, but is compacted: only the last record of
a key counts. See engine/pinned_plans.py.
"""

import base64
import json
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from broker.client.administration.values import NewTopic
from broker.client.opening import Target, admin, consumer, producer
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.errors import BrokerError, ErrorCode, MillstreamError
from broker.model import TopicPartition
from sql.errors import SqlError

logger = logging.getLogger(__name__)

VERSION = 2
WRITE_TIMEOUT_MS = 30_000
FETCH_BYTES = 16 * 1024 * 1024
COMMAND_BYTES_MAX = 1_000_000  # below the default limit of brokers for one batch
PLAN_BYTES_PLAIN = 100_000  # larger plans are compressed
PLAN_BYTES_MAX = 64 * 1024 * 1024  # size of a decompressed plan
NOTHING = -1
LATEST = -1
BROKERS_DEFAULT = -1  # replicas
POLL_MS = 50  # markers of transactions advance the position without waking the poll
POLL_RECORDS = 10_000
SILENT_POLLS_MAX = 600
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class CommandLogError(SqlError):
    """The command topic cannot be read or written."""


class TakenOver(CommandLogError):
    """Another server has written meanwhile; read its commands, and try again."""


class DamagedCommand(CommandLogError):
    """A record of the topic is not a valid command for this version."""


@dataclass(frozen=True, slots=True)
class Command:
    """One statement that changed something, with the settings of its session."""

    id: str  # stream/`NAME`/create
    statement: str
    properties: Mapping[str, object] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    # The server's settings that its query keeps.
    original: Mapping[str, object] = field(default_factory=dict)
    # Its plan; None in commands of version 1.
    plan: Mapping[str, object] | None = None
    # The offset of the command whose plan this is.
    pins: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """A command and its offset."""

    offset: int
    command: Command


def command_topic(service_id: str) -> str:
    """The name of a service's command topic."""
    return f"_confluent-ksql-{service_id}command_topic"


def config_topic(service_id: str) -> str:
    """The name of the topic in which headless servers of a service pin plans and settings."""
    return f"_confluent-ksql-{service_id}configs"


class CommandLog:
    """The commands of one service; not thread-safe."""

    def __init__(
        self,
        target: Target,
        topic: str,
        *,
        cleanup_policy: str = "delete",
    ) -> None:
        self.topic = topic
        self._target = target
        self._cleanup_policy = cleanup_policy
        self._producer: Producer | None = None
        self._reader: Consumer | None = None  # stays open: servers poll for commands every second
        self._next_offset = 0
        self._written = NOTHING  # the offset of this server's last command

    def open(self) -> None:
        """Create the topic if it does not exist, and check it."""
        configs = {
            "cleanup.policy": self._cleanup_policy,
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "min.insync.replicas": "1",
        }
        topic = NewTopic(self.topic, 1, BROKERS_DEFAULT, configs)
        try:
            with admin(self._target) as administration:
                error = administration.create_topics([topic]).errors.get(self.topic)
                if error is None:
                    return  # brokers of a cluster may not have it yet: it cannot be described
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise error
                described = administration.describe_topics([self.topic])[self.topic]
        except MillstreamError as error:
            raise CommandLogError(
                f'cannot open topic "{self.topic}": {error.message}', hint=error.hint
            ) from error
        if len(described.partitions) != 1:
            raise CommandLogError(
                f'topic "{self.topic}" has {len(described.partitions)} partitions, not 1',
                hint="use another ksql.service.id",
            )

    @property
    def is_writer(self) -> bool:
        """Whether this server wrote last, as far as is known; if not, the next write is refused."""
        return self._producer is not None

    def take_over(self) -> None:
        """Become the writer; the previous writer is fenced."""
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
            _close_quietly(opened, self.topic)
            if _was_fenced(error):
                raise TakenOver(
                    f'another server has taken over topic "{self.topic}"',
                    hint="the statement was not executed; send it again",
                ) from error
            raise CommandLogError(
                f'cannot write to topic "{self.topic}": {error.message}', hint=error.hint
            ) from error
        self._producer = opened

    def unread(self) -> Iterator[LoggedCommand]:
        """The commands written since the last call; DamagedCommand at the first bad record.

        The bad record stays unread: the next call raises the same error.
        """
        reader = self._opened_reader()
        try:
            yield from self._unread(reader)
        except Exception:
            self._close_reader()
            raise
        finally:
            reader.unsubscribe()  # fetch nothing until the next call

    def _opened_reader(self) -> Consumer:
        if self._reader is None:
            self._reader = consumer(
                self._target,
                client_id="millstream-sql",
                isolation_level="read_committed",
                auto_offset_reset="none",
                max_partition_fetch_bytes=FETCH_BYTES,
            )
        return self._reader

    def _unread(self, reader: Consumer) -> Iterator[LoggedCommand]:
        tp = TopicPartition(self.topic, 0)
        reader.assign([tp])
        end = reader.end_offsets([tp])[tp]
        if end == self._next_offset:
            return  # nothing new, as in most calls: one request is enough
        if self._wrote_last and self._written <= end <= self.next_offset:
            return  # only this server's command, whose marker may not be written yet
        if end < self._next_offset:
            raise DamagedCommand(
                f'topic "{self.topic}" ends at offset {end}, but commands up to '
                f"{self._next_offset} were read",
                hint="the topic was deleted or recreated: restore it from a backup",
            )
        start = reader.beginning_offsets([tp])[tp]
        if start > self._next_offset:
            raise DamagedCommand(
                f'topic "{self.topic}" begins at offset {start}; commands from offset '
                f"{self._next_offset} on are missing",
                hint="the topic must keep all commands: restore it from a backup",
            )
        reader.seek(tp, self._next_offset)
        silent = 0
        while reader.position(tp) < end:
            records = reader.poll(POLL_MS, max_records=POLL_RECORDS)
            silent = 0 if records else silent + 1
            if silent > SILENT_POLLS_MAX:
                raise CommandLogError(f'timed out reading topic "{self.topic}" to its end')
            for record in records:
                command = decode(record.key, record.value, self.topic, record.offset)
                self._next_offset = record.offset + 1
                yield LoggedCommand(record.offset, command)
        self._next_offset = max(self._next_offset, end)

    def has_unfinished(self) -> bool:
        """Whether the topic continues with records that are neither committed nor aborted.

        A server may have died during a write: a decided transaction will be committed, but is not
        visible until the coordinator writes its marker, or another writer takes over.
        """
        tp = TopicPartition(self.topic, 0)
        with admin(self._target) as administration:
            return administration.list_offsets({tp: LATEST})[tp].offset > self._next_offset

    @property
    def next_offset(self) -> int:
        """The offset of the next command, as far as is known."""
        return self._next_offset + (1 if self._wrote_last else 0)

    @property
    def _wrote_last(self) -> bool:
        """Whether the next record is the marker of this server's own transaction."""
        return self._written != NOTHING and self._next_offset == self._written + 1

    def append(self, command: Command) -> int:
        """Write a command in a transaction; returns its offset. TakenOver: read, and try again.

        No other server wrote between the last read and this command, which also counts as read.
        """
        return self.append_all([command])

    def append_all(self, commands: Sequence[Command]) -> int:
        """Write commands in one transaction, all or none; returns the offset of the last one."""
        assert self._producer is not None, "take_over comes first"
        records = [self._record(each) for each in commands]
        try:
            self._producer.begin_transaction()
            for key, value in records:
                sent = self._producer.send(self.topic, value, key, partition=0)
            self._producer.commit_transaction()
            self._written = sent.result().offset
            self._next_offset = self._written + 1
            return self._written
        except MillstreamError as error:
            self.resign()
            if _was_fenced(error):
                raise TakenOver(
                    f'another server has written to topic "{self.topic}"',
                    hint="the statement was not executed; send it again",
                ) from error
            raise CommandLogError(
                f'cannot write to topic "{self.topic}": {error.message}', hint=error.hint
            ) from error

    def _record(self, command: Command) -> tuple[bytes, bytes]:
        key, value = encode(command)
        if len(key) + len(value) > COMMAND_BYTES_MAX:
            raise CommandLogError(
                f"the statement and its plan have {len(value)} bytes; at most "
                f"{COMMAND_BYTES_MAX} are allowed",
                hint="compute parts of it in an earlier query",
            )
        return key, value

    def resign(self) -> None:
        """Stop writing until the next `take_over`."""
        closing, self._producer = self._producer, None
        if closing is not None:
            _close_quietly(closing, self.topic)

    def close(self) -> None:
        """Close the producer and the consumer; the next call opens them again."""
        self.resign()
        self._close_reader()

    def _close_reader(self) -> None:
        closing, self._reader = self._reader, None
        if closing is not None:
            closing.close(0)


def encode(command: Command) -> tuple[bytes, bytes]:
    """The key and value of a command's record."""
    body: dict[str, object] = {
        "statement": command.statement,
        "streamsProperties": dict(command.properties),
        "originalProperties": dict(command.original),
        "schemas": dict(command.schemas),
    }
    if command.plan is not None:
        body["plan"] = _packed(command.plan)
    if command.pins is not None:
        body["pins"] = command.pins
    body["version"] = VERSION
    return json.dumps(command.id).encode(), json.dumps(body).encode()


def _packed(plan: Mapping[str, object]) -> object:
    data = json.dumps(plan).encode()
    if len(data) <= PLAN_BYTES_PLAIN:
        return plan
    return {"zlib": base64.b64encode(zlib.compress(data)).decode()}


def decode(key: bytes | None, value: bytes | None, topic: str, offset: int) -> Command:
    """The command of a record."""
    where = f'offset {offset} of topic "{topic}"'
    try:
        name = json.loads(key or b"null")
        body = json.loads(value or b"null")
    except (ValueError, RecursionError):
        raise DamagedCommand(
            f"{where} is not a command: it is not JSON",
            hint="restore the topic from a backup",
        ) from None
    if not isinstance(name, str) or not isinstance(body, dict):
        raise DamagedCommand(f"{where} is not a command", hint="restore the topic from a backup")
    version = body.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise DamagedCommand(
            f"{where} is a command of version {version}, but this server only supports {VERSION}",
            hint="start a newer server",
        )
    return _command(name, body, where)


def _command(name: str, body: dict[str, object], where: str) -> Command:
    statement, properties = body.get("statement"), body.get("streamsProperties")
    if not isinstance(statement, str) or not isinstance(properties, dict):
        raise DamagedCommand(
            f"{where} is a command without a statement", hint="restore the topic from a backup"
        )
    schemas, original = body.get("schemas") or {}, body.get("originalProperties") or {}
    if not isinstance(schemas, dict) or not all(isinstance(each, str) for each in schemas.values()):
        raise DamagedCommand(
            f"{where} is a command with invalid schemas",
            hint="restore the topic from a backup",
        )
    plan, pins = _unpacked(body.get("plan")), body.get("pins")
    if (
        not isinstance(original, dict)
        or not isinstance(plan, dict | None)
        or not isinstance(pins, int | None)
    ):
        raise DamagedCommand(
            f"{where} is a command whose plan cannot be read",
            hint="restore the topic from a backup",
        )
    return Command(name, statement, properties, schemas, original, plan, pins)


def _unpacked(plan: object) -> object:
    """A decompressed plan; an invalid value if it cannot be read."""
    if not isinstance(plan, dict) or set(plan) != {"zlib"}:
        return plan
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(str(plan["zlib"])), PLAN_BYTES_MAX)
        return json.loads(data)
    except (ValueError, zlib.error, RecursionError):
        return "damaged"


def _was_fenced(error: BaseException) -> bool:
    """Whether another writer has taken over: then nothing was committed."""
    following: BaseException | None = error
    while following is not None:
        if isinstance(following, BrokerError) and following.code in FENCED:
            return True
        following = following.__cause__
    return False


def _close_quietly(closing: Producer, topic: str) -> None:
    try:
        closing.close(timeout_ms=0)
    except MillstreamError as error:
        # The coordinator ends an open transaction, at the latest when the next writer starts.
        logger.warning('closing the writer of topic "%s": %s', topic, error)
