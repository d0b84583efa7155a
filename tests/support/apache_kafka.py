"""A real Apache Kafka (server, tools, Java client) from Maven, for tests and benchmarks.

    with ApacheKafka(folder) as kafka:
        kafka.bootstrap                                     # "127.0.0.1:43121"
        kafka.run_tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--list")

All functions raise PeerMissing if Java or Maven is missing or cannot download the release.
"""

import base64
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.maven import Artifact, copy_jars
from tests.support.peer import (
    PeerMissing,
    cache_folder,
    fill_folder_once,
    find_command,
    wait_until,
)
from tests.support.ports import held_ports

VERSION = "4.3.1"  # the recorded responses in tests/ are from this release

TOOL_CLASSES = {
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}

# Tools and the servers of tests live for seconds: the optimising compiler and threads that collect
# garbage would only compete for the cores (a test's server takes a third of the processor time).
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
SHORT_LIVED_JVM = (*SHORT_LIVED, "-Xmx256m")
LONG_LIVED = ("-XX:+UseG1GC",)  # the options of Kafka's own scripts, for benchmarks
_QUIET_LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)
_STARTED = b"Kafka Server started"


class ToolFailed(Exception):
    """A Java program ended with an error; the message has its output."""


@dataclass(frozen=True, slots=True)
class KafkaRelease:
    """One release of Apache Kafka on this machine: its version and the folder of its jars."""

    version: str
    jars: Path

    def command(self, program: str, *args: str, jvm: Sequence[str] = SHORT_LIVED_JVM) -> list[str]:
        """The command line that runs a tool by its name, or any main class."""
        main_class = TOOL_CLASSES.get(program, program)
        return ["java", *jvm, *_QUIET_LOGGING, "-cp", f"{self.jars}/*", main_class, *args]

    def run_tool(
        self, program: str, *args: str, stdin: str | None = None, timeout_s: float = 150.0
    ) -> str:
        """Runs a tool and returns its output; raises ToolFailed if its exit code is not 0."""
        return run_java(self.command(program, *args), stdin=stdin, timeout_s=timeout_s)

    def compile(self, source: Path) -> str:
        """Compiles one Java source file, once, and returns the class path to run it with."""
        digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
        javac = find_command("javac")

        def fill(folder: Path) -> None:
            run_java([javac, "-cp", f"{self.jars}/*", "-d", str(folder), str(source)])

        with cache_folder("java-classes") as cache:
            classes = fill_folder_once(cache / f"{source.stem}-{self.version}-{digest}", fill)
        return f"{classes}:{self.jars}/*"


def java_command(class_path: str, main_class: str, *args: str) -> list[str]:
    """The command line of a short-lived Java program."""
    return ["java", *SHORT_LIVED_JVM, *_QUIET_LOGGING, "-cp", class_path, main_class, *args]


def run_java(command: Sequence[str], *, stdin: str | None = None, timeout_s: float = 150.0) -> str:
    """Runs a Java program and returns its standard output."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode != 0:
        raise ToolFailed(
            f"{' '.join(command[-6:])} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def fetch_apache_kafka() -> KafkaRelease:
    """VERSION or MILLSTREAM_KAFKA_VERSION; downloaded at the first call."""
    fetched = _fetch_once(os.environ.get("MILLSTREAM_KAFKA_VERSION", VERSION))
    if isinstance(fetched, PeerMissing):
        raise PeerMissing(*fetched.args)
    return fetched


@functools.cache
def _fetch_once(version: str) -> KafkaRelease | PeerMissing:
    # The failure is cached, too: a mirror that does not respond is tried once per run.
    try:
        find_command("java")
        with cache_folder("apache-kafka") as cache:
            folder = fill_folder_once(cache / version, functools.partial(_copy_release, version))
            return KafkaRelease(version, folder)
    except PeerMissing as missing:
        return missing


def _copy_release(version: str, folder: Path) -> None:
    copy_jars(
        [
            Artifact("org.apache.kafka", "kafka_2.13", version),
            Artifact("org.apache.kafka", "kafka-tools", version),
        ],
        folder,
    )
    # The logging backend must have the version of the logging API that Kafka depends on.
    (interface,) = folder.glob("slf4j-api-*.jar")
    logging_version = interface.stem.removeprefix("slf4j-api-")
    copy_jars([Artifact("org.slf4j", "slf4j-simple", logging_version)], folder)


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """The id and ports of one node, and the controllers of its cluster."""

    node_id: int
    cluster_id: str
    port: int
    controller_port: int
    voters: str
    nodes: int


class ApacheKafka:
    """One Kafka node (broker and controller in one process) on ports of its own.

    It may be stopped or killed and started again on the same data and ports.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        heap_mb: int = 512,
        jvm: Sequence[str] = SHORT_LIVED,
        address: NodeAddress | None = None,
    ) -> None:
        self.release = fetch_apache_kafka()
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        self.data_dir = self.folder / "data"
        self._address = address or _addresses(1)[0]
        self._settings = dict(settings or {})
        self._jvm = (*jvm, f"-Xmx{heap_mb}m", f"-Xms{heap_mb}m")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._address.port}"

    @property
    def node_id(self) -> int:
        return self._address.node_id

    @property
    def pid(self) -> int | None:
        """The process id while the node runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> Self:
        """Starts the node, and waits until it serves clients."""
        self.launch()
        self.wait_started()
        return self

    def launch(self) -> None:
        """Starts the process without waiting: nodes of a cluster need each other to start."""
        assert self._process is None, "the node is running"
        properties = self.folder / "server.properties"
        if not self.data_dir.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            properties.write_text(self._properties())
            format_arguments = [
                "format",
                f"--cluster-id={self._address.cluster_id}",  # the id may begin with a dash
                f"--config={properties}",
            ]
            self.release.run_tool("kafka-storage", *format_arguments)
        command = self.release.command("kafka.Kafka", str(properties), jvm=self._jvm)
        with open(self.log_file, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def wait_started(self, *, timeout_s: float = 150.0) -> None:
        """Waits until a launched node serves clients."""
        process = self._process
        assert process is not None, "the node was not launched"

        def started() -> bool:
            if process.poll() is not None:
                raise ToolFailed(
                    f"Kafka ended while starting:\n{self.log_file.read_text()[-4000:]}"
                )
            return _STARTED in self.log_file.read_bytes()

        try:
            wait_until(started, "the start of Apache Kafka", timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shuts the node down cleanly; it can be restarted with the same data."""
        self._end(graceful=True)

    def close(self) -> None:
        """Shuts the node down cleanly, and removes its temporary data folder."""
        self.stop()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kills the process; it can be restarted with the same data."""
        self._end(graceful=False)

    def run_tool(self, program: str, *args: str, stdin: str | None = None) -> str:
        """Runs a tool of the same release, by its name or main class, and returns its output."""
        return self.release.run_tool(program, *args, stdin=stdin)

    @property
    def log_file(self) -> Path:
        return self.folder / "server.log"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, *, graceful: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if graceful:
            process.terminate()
            try:
                process.wait(timeout=60)
                return
            except subprocess.TimeoutExpired:
                pass
        process.kill()
        process.wait()

    def _properties(self) -> str:
        node = self._address
        replicas = str(min(3, node.nodes))
        in_sync = str(min(2, node.nodes))
        address = f"PLAINTEXT://127.0.0.1:{node.port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(node.node_id),
            "listeners": f"{address},CONTROLLER://127.0.0.1:{node.controller_port}",
            "advertised.listeners": address,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": node.voters,
            "log.dirs": str(self.data_dir),
            # Tests write records with old timestamps: retention does not delete them for an hour.
            "log.initial.task.delay.ms": "3600000",
            # A cluster of few nodes cannot hold three replicas of Kafka's own topics.
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": in_sync,
            "default.replication.factor": replicas,
            **self._settings,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())


class ApacheKafkaCluster:
    """Several Kafka nodes that replicate to each other, so that leaders can move."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        nodes: int = 3,
        settings: Mapping[str, str] | None = None,
        heap_mb: int = 384,
    ) -> None:
        self._own_folder = folder is None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        self.nodes = [
            ApacheKafka(
                self._folder / f"node-{address.node_id}",
                settings=settings,
                heap_mb=heap_mb,
                address=address,
            )
            for address in _addresses(nodes)
        ]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def node(self, node_id: int) -> ApacheKafka:
        """The node with this broker id."""
        return next(node for node in self.nodes if node.node_id == node_id)

    def start(self) -> Self:
        """Starts all nodes, and waits until all serve clients."""
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_started()
        return self

    def stop(self) -> None:
        """Kills all nodes: the last ones would find no controller for a clean shutdown."""
        for node in self.nodes:
            node.kill()
        if self._own_folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def run_tool(self, program: str, *args: str, stdin: str | None = None) -> str:
        """Runs a tool of the same release, by its name or main class, and returns its output."""
        return self.nodes[0].run_tool(program, *args, stdin=stdin)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _addresses(nodes: int) -> list[NodeAddress]:
    ports = held_ports(2 * nodes)
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    controllers = {node_id: ports[nodes + node_id - 1] for node_id in range(1, nodes + 1)}
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in controllers.items())
    return [
        NodeAddress(node_id, cluster_id, ports[node_id - 1], controller_port, voters, nodes)
        for node_id, controller_port in controllers.items()
    ]
