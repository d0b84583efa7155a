"""`millstream run`: runs a streams application, with an embedded broker or on any cluster."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import click
from rich.status import Status
from rich.text import Text

from broker import Broker, BrokerConfig
from broker.client import admin
from broker.client.api import NewTopic
from broker.client.cluster_admin import Admin
from broker.client.opening import Target
from broker.descriptors import raise_limit
from broker.errors import ErrorCode, MillstreamError
from broker.model import LATEST_TIMESTAMP
from broker.server import Server
from millstream.commands.applications import load_app
from millstream.commands.options import BOOTSTRAP_TIMEOUT_MS, json_option, key_values
from millstream.commands.stopping import StopRequest, stop_signals
from millstream.output import Output
from millstream.settings import DATA_DIRECTORY
from streams import AppState, StreamsApp, Topology
from streams.serving import QueryServer
from streams.topology import SinkNode, SourceNode

PORT = 9092
REFRESH_EVERY_S = 1.0
LAG_TIMEOUT_MS = 2000
CONNECT_LIMIT_MS = 10_000
PRINT_EVERY_S = 10.0  # without a terminal
SAMPLE = re.compile(r"^millstream_streams_runner_(\w+)\{.*\} (\S+)$", re.MULTILINE)


@click.command()
@click.argument("application")
@click.option(
    "--application-id",
    help="The application id, the prefix of its topics and its group. Default: the module name.",
)
@click.option(
    "--bootstrap",
    "-b",
    envvar="MILLSTREAM_BOOTSTRAP",
    metavar="HOST:PORT,...",
    help="The cluster: Millstream or Kafka. Default: an embedded broker.",
)
@click.option(
    "--data-dir",
    "-d",
    default=DATA_DIRECTORY,
    show_default=True,
    help="The data directory of the embedded broker.",
)
@click.option(
    "--port",
    "-p",
    default=PORT,
    show_default=True,
    help="The port of the embedded broker; 0: any free port.",
)
@click.option(
    "--state-dir", help="The directory of state stores. Default: next to the broker's data."
)
@click.option("--threads", type=int, help="The number of threads.")
@click.option(
    "--processes", type=int, help="The number of processes. Default: threads in this process."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting, by Kafka Streams' name, such as commit.interval.ms=1000; repeatable.",
)
@json_option
def run(  # noqa: PLR0913 - one argument per option
    application: str,
    application_id: str | None,
    bootstrap: str | None,
    data_dir: str,
    port: int,
    state_dir: str | None,
    threads: int | None,
    processes: int | None,
    settings: tuple[str, ...],
    output: Output,
) -> None:
    """Run APPLICATION until interrupted; then commit and exit.

    APPLICATION is module:name: a Topology, a StreamsBuilder, a function that returns one of them,
    or a function of application_id, broker and settings that returns a StreamsApp. With --set
    application.server=HOST:PORT its stores can be queried over HTTP.
    """
    values = key_values(settings)
    for name, value in (("num_stream_threads", threads), ("processes", processes)):
        if value is not None:
            values[name] = str(value)
    values.setdefault("state_dir", state_dir or f"{data_dir}/streams")
    name = application_id or application.partition(":")[0].replace(".", "-")
    make_app = load_app(application, name, values)
    with _broker(bootstrap, data_dir, port, output) as broker:
        app = make_app(broker)
        text = app.topology.describe()
        output.line({"event": "topology", "application_id": name, "topology": text}, text)
        with admin(broker, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS) as cluster:
            cluster.list_topics(timeout_ms=CONNECT_LIMIT_MS)  # raises if no broker responds
            if not isinstance(broker, str):
                create_missing(cluster, app.topology, output)
            _watch(app, cluster, output)


@contextmanager
def _broker(bootstrap: str | None, data_dir: str, port: int, output: Output) -> Iterator[Target]:
    """The cluster, or an embedded broker that clients can reach."""
    if bootstrap is not None:
        yield bootstrap
        return
    raise_limit()
    config = BrokerConfig(
        listeners=(f"PLAINTEXT://127.0.0.1:{port}",), group_initial_rebalance_delay_ms=0
    )
    with Broker(config, data_directory=data_dir) as broker, Server(broker) as server:
        address = server.bootstrap
        output.line(
            {"event": "broker", "bootstrap": address, "data_dir": data_dir},
            f"broker on {address}, data in {data_dir}",
        )
        yield broker


def create_missing(cluster: Admin, topology: Topology, output: Output) -> None:
    """Create the topics that the topology reads and writes, on an embedded broker."""
    internal = set(topology.repartition_topics)
    topics: set[str] = {store.topic for store in topology.global_stores.values()}
    for node in (node for part in topology.sub_topologies for node in part.nodes):
        if isinstance(node, SourceNode):
            topics.update(node.topics)
        elif isinstance(node, SinkNode) and isinstance(node.topic, str):
            topics.add(node.topic)
    missing = sorted(topics - internal - set(cluster.list_topics()))
    errors = cluster.create_topics([NewTopic(topic) for topic in missing]).errors if missing else {}
    for error in errors.values():
        # A client of the new broker may have created the topic in the meantime.
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise error
    created = [topic for topic in missing if topic not in errors]
    if created:
        output.line({"event": "created", "topics": created}, f"created {', '.join(created)}")


def _watch(app: StreamsApp, cluster: Admin, output: Output) -> None:
    """Run the application and show its progress, until a signal arrives or it fails."""
    stop = StopRequest()

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in stop_signals()}
    try:
        with app, _queries(app, output), _ProgressDisplay(output) as display:
            progress = Progress.of(app, cluster, None)
            while not stop.wait(REFRESH_EVERY_S) and not app.wait(timeout_ms=0):
                progress = Progress.of(app, cluster, progress)
                display.show(progress)
            processed = totals(app)
            display.show(Progress.of(app, cluster, progress), last=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    output.done(
        f"committed and stopped after {processed.get('records_processed_total', 0):,} records",
        event="stopped",
        records_in=processed.get("records_processed_total", 0),
    )


@contextmanager
def _queries(app: StreamsApp, output: Output) -> Iterator[None]:
    """Serve the stores over HTTP, if the application has an address."""
    address = app.config.application_server
    if not address:
        yield
        return
    with QueryServer(app):
        text = f"queries on http://{address}/"
        output.line({"event": "queries", "application_server": address}, text)
        yield


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an application at one moment."""

    at: float
    state: AppState
    records_in: int
    records_out: int
    in_per_second: float
    out_per_second: float
    lag: int | None  # from the committed offsets; None: unknown
    restored: int
    restore_remaining: int

    @classmethod
    def of(cls, app: StreamsApp, cluster: Admin, before: "Progress | None") -> "Progress":
        """The current progress; rates are since the previous one."""
        counted, now = totals(app), time.monotonic()
        records_in = counted.get("records_processed_total", 0)
        records_out = counted.get("records_produced_total", 0)
        seconds = now - before.at if before else REFRESH_EVERY_S
        if before is not None and seconds < REFRESH_EVERY_S / 2:  # too short for a rate
            rates = (before.in_per_second, before.out_per_second)
        else:
            rates = (
                (records_in - (before.records_in if before else 0)) / seconds,
                (records_out - (before.records_out if before else 0)) / seconds,
            )
        return cls(
            at=now,
            state=app.state,
            records_in=records_in,
            records_out=records_out,
            in_per_second=rates[0],
            out_per_second=rates[1],
            lag=_lag(cluster, app.config.application_id),
            restored=counted.get("restored_records_total", 0),
            restore_remaining=counted.get("restore_remaining", 0),
        )

    def text(self) -> str:
        """The progress as a line."""
        if self.restore_remaining:
            total = self.restored + self.restore_remaining
            return f"restoring: {self.restored:,} of {total:,} records"
        lag = "unknown" if self.lag is None else f"{self.lag:,}"
        return (
            f"{self.state.value}: {self.records_in:,} records in ({self.in_per_second:,.0f}/s), "
            f"{self.records_out:,} out ({self.out_per_second:,.0f}/s), lag {lag}"
        )

    def fields(self) -> dict[str, object]:
        """The progress as JSON fields."""
        return {
            "event": "progress",
            "state": self.state.value,
            "records_in": self.records_in,
            "records_out": self.records_out,
            "in_per_second": round(self.in_per_second),
            "out_per_second": round(self.out_per_second),
            "lag": self.lag,
            "restored": self.restored,
            "restore_remaining": self.restore_remaining,
        }


class _ProgressDisplay:
    """A live line on a terminal; otherwise regular lines, or JSON lines."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._printed_at = 0.0
        self._live: Status | None = None
        if output.progress_console.is_terminal and not output.as_json:
            self._live = Status("starting", console=output.progress_console)

    def __enter__(self) -> "_ProgressDisplay":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, progress: Progress, *, last: bool = False) -> None:
        """Show the progress."""
        if self._output.as_json:
            self._output.line(progress.fields(), "")
        elif self._live is not None:
            self._live.update(Text(progress.text()))
        elif last or progress.at - self._printed_at >= PRINT_EVERY_S:
            self._printed_at = progress.at
            self._output.progress_console.print(Text(progress.text()), soft_wrap=True)


def totals(app: StreamsApp) -> dict[str, int]:
    """Counters of all runners, added up."""
    added: dict[str, int] = {}
    for name, value in SAMPLE.findall(app.metrics_text()):
        added[name] = added.get(name, 0) + int(float(value))
    return added


def _lag(cluster: Admin, group_id: str) -> int | None:
    """The number of records after the committed offsets; None if it is unknown."""
    try:
        committed = cluster.list_group_offsets(group_id, timeout_ms=LAG_TIMEOUT_MS).values
        latest = dict.fromkeys(committed, LATEST_TIMESTAMP)
        ends = cluster.list_offsets(latest, timeout_ms=LAG_TIMEOUT_MS).values
    except MillstreamError:
        return None
    return sum(max(0, ends[tp].offset - committed[tp].offset) for tp in ends)
