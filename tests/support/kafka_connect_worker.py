"""A real Kafka Connect from Apache Kafka's release, in distributed mode, for tests.

    with KafkaConnect(folder, bootstrap=broker.bootstrap) as connect:
        httpx.get(f"{connect.url}/connectors")

All functions raise PeerMissing if Java or Maven is missing or cannot download the release.
"""

import functools
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx

from tests.support.apache_kafka import (
    SHORT_LIVED_JVM,
    ToolFailed,
    fetch_apache_kafka,
)
from tests.support.maven import Artifact, copy_without_dependencies
from tests.support.peer import (
    PeerMissing,
    cache_folder,
    fill_folder_once,
    skip_without_peer,
    wait_until,
)
from tests.support.ports import held_ports

_MAIN_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"


def fetch_file_connectors(version: str) -> Path:
    """The folder with Kafka's file connectors, which its tools do not include."""
    artifacts = [Artifact("org.apache.kafka", "connect-file", version)]
    with cache_folder("kafka-connect") as cache:
        fill = functools.partial(copy_without_dependencies, artifacts)
        return fill_folder_once(cache / version, fill)


def skip_without_kafka_connect() -> None:
    """Skip the test, with the reason, if Kafka Connect is not available."""
    try:
        fetch_file_connectors(fetch_apache_kafka().version)
    except PeerMissing as missing:
        skip_without_peer(missing)


class KafkaConnect:
    """One Kafka Connect worker on its own port."""

    def __init__(
        self, folder: Path, *, bootstrap: str, settings: Mapping[str, str] | None = None
    ) -> None:
        """By default, the internal topics are those of `worker_settings`."""
        release = fetch_apache_kafka()
        self.version = release.version
        self.folder = folder
        self.log_file = folder / "connect.log"
        self._plugins = fetch_file_connectors(release.version)
        self._jars = release.jars
        (self.port,) = held_ports(1)
        self._settings = worker_settings(bootstrap, self.port) | dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, timeout_s: float = 120.0) -> Self:
        """Starts the worker, and waits until it responds to requests."""
        assert self._process is None, "the worker is running"
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self.folder / "worker.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        class_path = f"{self._jars}/*:{self._plugins}/*"
        command = ["java", *SHORT_LIVED_JVM, "-cp", class_path, _MAIN_CLASS, str(properties)]
        with open(self.log_file, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        process = self._process

        def healthy() -> bool:
            if process.poll() is not None:
                raise ToolFailed(f"Kafka Connect ended while starting:\n{self.printed()}")
            try:
                return httpx.get(f"{self.url}/health", timeout=5.0).status_code == httpx.codes.OK
            except httpx.TransportError:
                return False

        try:
            wait_until(healthy, "the start of Kafka Connect", timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise
        return self

    def printed(self) -> str:
        """The end of the worker's output."""
        return self.log_file.read_text(errors="replace")[-8000:]

    def stop(self) -> None:
        """Shuts the worker down cleanly."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None

    def kill(self) -> None:
        """Kills the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def worker_settings(bootstrap: str, port: int) -> dict[str, str]:
    """Worker settings for Kafka Connect and for our worker."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "connect-cluster",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "config.storage.topic": "connect-configs",
        "config.storage.replication.factor": "1",
        "offset.storage.topic": "connect-offsets",
        "offset.storage.replication.factor": "1",
        "status.storage.topic": "connect-status",
        "status.storage.replication.factor": "1",
        "listeners": f"http://127.0.0.1:{port}",
        "offset.flush.interval.ms": "1000",
        "connector.allowed.paths": f"{tempfile.gettempdir()},.",
        "plugin.modules": "tests",
    }
