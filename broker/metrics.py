"""Counters of the broker, and their metric families for Prometheus.

Counters are plain integers that are incremented per request or per batch, never per record.
Families are collected at each scrape.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from broker.exposition import Exposition

NANOSECONDS = 1e-9


@dataclass(slots=True)
class RequestStats:
    """Requests of one API: their number, and their time by part."""

    count: int = 0
    errors: int = 0
    queue_ns: int = 0
    local_ns: int = 0
    remote_ns: int = 0
    send_ns: int = 0


@dataclass(slots=True)
class TopicStats:
    """Counters of one topic."""

    bytes_in: int = 0
    messages_in: int = 0
    bytes_out: int = 0
    messages_out: int = 0
    produce_requests: int = 0
    produce_failures: int = 0
    fetch_requests: int = 0


@dataclass(slots=True)
class Metrics:
    """All counters of one broker."""

    requests: dict[str, RequestStats] = field(default_factory=dict)
    topics: dict[str, TopicStats] = field(default_factory=dict)
    connections_open: int = 0
    connections_accepted: int = 0
    connections_refused: int = 0
    connections_failed: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    _requests: dict[int, RequestStats] = field(default_factory=dict, init=False, repr=False)

    def request(self, api: IntEnum) -> RequestStats:
        """The counters of one API."""
        # By number: accessing the name of an enum member is slow.
        found = self._requests.get(api)
        if found is None:
            found = self._requests[api] = self.requests[api.name] = RequestStats()
        return found

    def topic(self, name: str) -> TopicStats:
        """The counters of one topic."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicStats()
        return found

    def forget_topic(self, name: str) -> None:
        """Remove the counters of a deleted topic."""
        self.topics.pop(name, None)


def write_counters(metrics: Metrics, out: Exposition) -> None:
    """Write the counters of requests, topics and connections."""
    _write_requests(metrics, out)
    _write_topics(metrics, out)
    for name, kind, text in CONNECTION_FAMILIES:
        out.single(f"millstream_{name}", kind, text, getattr(metrics, name.removesuffix("_total")))


def _write_requests(metrics: Metrics, out: Exposition) -> None:
    requests = sorted(metrics.requests.items())
    out.family("millstream_requests_total", "counter", "Requests answered, by API.")
    for api, stats in requests:
        out.sample("millstream_requests_total", stats.count, api=api)
    out.family("millstream_request_errors_total", "counter", "Requests that failed as a whole.")
    for api, stats in requests:
        out.sample("millstream_request_errors_total", stats.errors, api=api)
    out.family(
        "millstream_request_seconds_total",
        "counter",
        "Time of requests, by part: queue (waiting to be handled), local (handling), remote "
        "(waiting for data, members or the disk), send (writing the response).",
    )
    for api, stats in requests:
        for part in ("queue", "local", "remote", "send"):
            seconds = getattr(stats, f"{part}_ns") * NANOSECONDS
            out.sample("millstream_request_seconds_total", seconds, api=api, part=part)


def _write_topics(metrics: Metrics, out: Exposition) -> None:
    topics = sorted(metrics.topics.items())
    for name, text in TOPIC_FAMILIES:
        out.family(f"millstream_topic_{name}_total", "counter", text)
        for topic, stats in topics:
            out.sample(f"millstream_topic_{name}_total", getattr(stats, name), topic=topic)


TOPIC_FAMILIES = (
    ("bytes_in", "Bytes of record batches appended."),
    ("messages_in", "Records appended."),
    ("bytes_out", "Bytes of record batches fetched."),
    ("messages_out", "Offsets returned by fetches."),
    ("produce_requests", "Partitions written to by produce requests."),
    ("produce_failures", "Partitions that refused a produce request."),
    ("fetch_requests", "Partitions read by fetch requests."),
)

CONNECTION_FAMILIES = (
    ("connections_open", "gauge", "Connections open now."),
    ("connections_accepted_total", "counter", "Connections accepted."),
    ("connections_refused_total", "counter", "Connections refused by a limit."),
    ("connections_failed_total", "counter", "Connections closed because of invalid requests."),
    ("bytes_received_total", "counter", "Bytes received from clients."),
    ("bytes_sent_total", "counter", "Bytes sent to clients."),
)
