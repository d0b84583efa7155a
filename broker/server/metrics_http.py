"""The metrics page: counters, logs, groups and lag as Prometheus text over HTTP."""

import logging
import os
import resource
from dataclasses import dataclass

from broker.broker import Broker
from broker.coordinator.group_descriptions import GroupSnapshot
from broker.exposition import METRICS_TYPE, Exposition
from broker.handlers import BrokerState
from broker.metrics import write_counters
from broker.model import TopicPartition
from broker.rest import (
    HttpError,
    HttpServer,
    Json,
    PlainText,
    Reply,
    RestApplication,
    RestRequest,
    RestService,
    Route,
)

logger = logging.getLogger(__name__)

CONNECTIONS_MANY = 100  # they must not use up descriptors that clients of the broker need
MESSAGES = {404: "metrics are at /metrics", 405: "only GET is supported"}


class MetricsPage(HttpServer):
    """Serves GET /metrics in a separate thread."""

    def __init__(self, broker: Broker, port: int) -> None:
        """Nothing listens before `start`."""
        host = broker.config.metrics_host or "0.0.0.0"
        application = RestApplication(SERVICE, broker)
        super().__init__(
            application,
            listen=f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            name="broker-metrics",
            allowed_hosts=broker.config.metrics_allowed_hosts,
            refusal=application.refusal,
            json_only=False,
            connections_many=CONNECTIONS_MANY,
        )


def _page(broker: Broker, request: RestRequest) -> Json:
    del request
    return PlainText(metrics_text(broker))


def _error_reply(error: Exception) -> Reply:
    match error:
        case HttpError():
            message = error.message or MESSAGES.get(error.status, error.phrase)
            return Reply(PlainText(f"{message}\n"), error.status, media_type=METRICS_TYPE)
        case _:
            logger.error("the metrics page failed", exc_info=error)
            return Reply(PlainText("Internal Server Error\n"), 500, media_type=METRICS_TYPE)


ROUTES: tuple[Route[Broker, RestRequest], ...] = (
    Route("GET", "/metrics", _page),
    Route("GET", "/", _page),
)
SERVICE = RestService(ROUTES, _error_reply, RestRequest, media_types=(METRICS_TYPE,))


def metrics_text(broker: Broker) -> str:
    """The page with all metrics."""
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
    """Values that are read under the lock and written without it."""

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
