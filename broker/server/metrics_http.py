"""The metrics page: counters, logs, groups and lag as Prometheus text over HTTP."""

import asyncio
import logging
import os
import resource
from http import HTTPStatus

from broker.broker import Broker
from broker.errors import ConfigError
from broker.handlers import BrokerState
from broker.metrics import Exposition, write_counters
from broker.model import TopicPartition

logger = logging.getLogger(__name__)

REQUEST_BYTES_MAX = 16 * 1024
REQUEST_SECONDS_MAX = 10.0
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPage:
    """Answers GET /metrics, if the settings give it a port."""

    def __init__(self, broker: Broker) -> None:
        """Nothing listens before `start`."""
        self._broker = broker
        self._server: asyncio.Server | None = None

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
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._respond(head))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            logger.debug("a request for metrics was broken off")
        except TimeoutError:
            logger.debug("a request for metrics did not arrive in time")
        finally:
            writer.close()

    def _respond(self, head: bytes) -> bytes:
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if method not in (b"GET", b"HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered\n")
        if path not in (b"/metrics", b"/"):
            return _response(HTTPStatus.NOT_FOUND, "the page is /metrics\n")
        page = _response(HTTPStatus.OK, metrics_text(self._broker))
        return page.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == b"HEAD" else page


def _response(status: HTTPStatus, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def metrics_text(broker: Broker) -> str:
    """Everything there is to tell."""
    out = Exposition()
    with broker.lock:
        write_counters(broker.metrics, out)
        _write_logs(broker.state, out)
        _write_groups(broker.state, out)
    _write_process(out)
    return out.text()


def _write_logs(state: BrokerState, out: Exposition) -> None:
    logs = sorted(state.storage.logs(), key=lambda log: log.topic_partition)
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
    out.single("millstream_topics", "gauge", "Topics.", len(state.topics))
    out.single("millstream_partitions", "gauge", "Partitions.", len(logs))
    out.single(
        "millstream_fetch_sessions", "gauge", "Fetch sessions open.", len(state.fetch_sessions)
    )


def _write_groups(state: BrokerState, out: Exposition) -> None:
    groups = state.groups.snapshot()
    out.family("millstream_group_members", "gauge", "Members of a group, by its state.")
    for group in groups:
        out.sample(
            "millstream_group_members", group.member_count, group=group.group_id, state=group.state
        )
    out.family("millstream_group_offset", "gauge", "Committed offset.")
    for group in groups:
        for (topic, partition), offset in sorted(group.offsets.items()):
            out.sample(
                "millstream_group_offset",
                offset,
                group=group.group_id,
                topic=topic,
                partition=partition,
            )
    out.family("millstream_group_lag", "gauge", "Records behind the high watermark.")
    for group in groups:
        for (topic, partition), offset in sorted(group.offsets.items()):
            log = state.storage.get(TopicPartition(topic, partition))
            if log is not None:
                out.sample(
                    "millstream_group_lag",
                    max(log.high_watermark - offset, 0),
                    group=group.group_id,
                    topic=topic,
                    partition=partition,
                )


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
        ("max_fds", "gauge", "Files and sockets that may be open.", soft),
    ):
        out.single(f"process_{name}", kind, text, value)
