"""The metrics page: counters, logs, groups and lag as Prometheus text over HTTP."""

import asyncio
import logging
import os
import resource
from dataclasses import dataclass
from http import HTTPStatus

from broker.broker import Broker
from broker.coordinator.group_descriptions import GroupSnapshot
from broker.errors import ConfigError
from broker.exposition import Exposition
from broker.handlers import BrokerState
from broker.metrics import write_counters
from broker.model import TopicPartition
from broker.server.request_guard import AllowedHosts

logger = logging.getLogger(__name__)

REQUEST_BYTES_MAX = 16 * 1024
REQUEST_SECONDS_MAX = 10.0
CONNECTIONS_MAX = 100  # one more, and the oldest one is closed
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPage:
    """Answers GET /metrics, if the settings give it a port."""

    def __init__(self, broker: Broker) -> None:
        """Nothing listens before `start`."""
        self._broker = broker
        config = broker.config
        self._hosts = AllowedHosts(config.metrics_host, config.metrics_allowed_hosts)
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, None] = {}  # the oldest one first

    async def start(self) -> int | None:
        """Listen; the port, or None when there is no page."""
        host, port = self._broker.config.metrics_host, self._broker.config.metrics_port
        if port is None:
            return None
        try:
            self._server = await asyncio.start_server(
                self._serve, host, port, limit=REQUEST_BYTES_MAX
            )
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port}: {error.strerror}", at='setting "metrics.port"'
            ) from error
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            next(iter(self._open)).transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                # With thousands of partitions the text takes a while: requests continue meanwhile.
                writer.write(await asyncio.to_thread(self._respond, head))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            logger.debug("a request for metrics was interrupted")
        except TimeoutError:
            logger.debug("a request for metrics did not arrive in time")
        finally:
            self._open.pop(writer, None)
            writer.close()

    def _respond(self, head: bytes) -> bytes:
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if (problem := self._hosts.problem(_headers(head))) is not None:
            return _response(HTTPStatus.FORBIDDEN, f"{problem}\n")
        if method not in (b"GET", b"HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is supported\n")
        if path not in (b"/metrics", b"/"):
            return _response(HTTPStatus.NOT_FOUND, "metrics are at /metrics\n")
        page = _response(HTTPStatus.OK, metrics_text(self._broker))
        return page.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == b"HEAD" else page


def _headers(head: bytes) -> list[tuple[bytes, bytes]]:
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return [(name.strip().lower(), value.strip()) for name, colon, value in pairs if colon]


def _response(status: HTTPStatus, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def metrics_text(broker: Broker) -> str:
    """Everything there is to tell."""
    with broker.lock:
        picture = _take_picture(broker.state)
    out = Exposition()
    write_counters(broker.metrics, out)
    _write_logs(picture, out)
    _write_groups(picture, out)
    _write_process(out)
    return out.text()


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """The metrics of one log."""

    topic_partition: TopicPartition
    size_bytes: int
    start_offset: int
    end_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class BrokerSnapshot:
    """What was read under the lock, to be written without it."""

    logs: list[LogSnapshot]
    groups: list[GroupSnapshot]
    topics: int
    fetch_sessions: int


def _take_picture(state: BrokerState) -> BrokerSnapshot:
    logs = [
        LogSnapshot(
            log.topic_partition,
            log.size_bytes,
            log.start_offset,
            log.end_offset,
            log.high_watermark,
        )
        for log in state.storage.logs()
    ]
    return BrokerSnapshot(
        logs, state.groups.snapshot(), len(state.topics), len(state.fetch_sessions)
    )


def _write_logs(picture: BrokerSnapshot, out: Exposition) -> None:
    logs = sorted(picture.logs, key=lambda log: log.topic_partition)
    families = (
        ("size_bytes", "Bytes of all segments."),
        ("start_offset", "First offset."),
        ("end_offset", "Offset after the last record."),
        ("high_watermark", "Offset up to which records are visible."),
    )
    for attribute, text in families:
        name = f"millstream_log_{attribute}"
        out.family(name, "gauge", text)
        for log in logs:
            topic, partition = log.topic_partition
            out.sample(name, getattr(log, attribute), topic=topic, partition=partition)
    out.single("millstream_topics", "gauge", "Topics.", picture.topics)
    out.single("millstream_partitions", "gauge", "Partitions.", len(logs))
    out.single("millstream_fetch_sessions", "gauge", "Fetch sessions open.", picture.fetch_sessions)


def _write_groups(picture: BrokerSnapshot, out: Exposition) -> None:
    ends = {log.topic_partition: log.high_watermark for log in picture.logs}
    name = "millstream_group_members"
    out.family(name, "gauge", "Members of a group, by its state.")
    for group in picture.groups:
        out.sample(name, group.member_count, group=group.group_id, state=group.state)
    committed = [
        (group.group_id, where, offset)
        for group in picture.groups
        for where, offset in sorted(group.offsets.items())
    ]
    name = "millstream_group_offset"
    out.family(name, "gauge", "Committed offset.")
    for group_id, (topic, partition), offset in committed:
        out.sample(name, offset, group=group_id, topic=topic, partition=partition)
    name = "millstream_group_lag"
    out.family(name, "gauge", "Records behind the high watermark.")
    for group_id, where, offset in committed:
        if where in ends:
            lag = max(ends[where] - offset, 0)
            out.sample(name, lag, group=group_id, topic=where.topic, partition=where.partition)


def _write_process(out: Exposition) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    for name, kind, text, value in (
        (
            "resident_memory_bytes",
            "gauge",
            "Resident memory.",
            float(pages * os.sysconf("SC_PAGE_SIZE")),
        ),
        (
            "cpu_seconds_total",
            "counter",
            "User and system time.",
            usage.ru_utime + usage.ru_stime,
        ),
        ("open_fds", "gauge", "Open files and sockets.", len(os.listdir("/proc/self/fd"))),
        ("max_fds", "gauge", "Maximum number of open files and sockets.", soft),
    ):
        out.single(f"process_{name}", kind, text, value)
