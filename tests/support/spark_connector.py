"""The jars of Spark's own connector for Kafka, from Maven."""

import functools
from pathlib import Path

from tests.support.maven import Artifact, copy_without_dependencies
from tests.support.peer import PeerMissing, cache_folder, fill_folder_once

SPARK = "org.apache.spark"
KAFKA_CLIENTS = Artifact("org.apache.kafka", "kafka-clients", "3.9.2")
POOL = Artifact("org.apache.commons", "commons-pool2", "2.13.1")
# The repository may not have our version of Spark yet; these versions also run on it.
CONNECTOR_VERSIONS = ("4.2.0",)
TOKEN_VERSIONS = ("4.2.0", "4.1.0-preview1", "4.0.0")


def fetch_spark_connector(spark_version: str) -> list[Path]:
    """Download the jars for "spark.jars", or raise PeerMissing."""
    fetched = _fetch_once(spark_version)
    if isinstance(fetched, PeerMissing):
        raise PeerMissing(*fetched.args)
    return fetched


@functools.cache
def _fetch_once(spark_version: str) -> list[Path] | PeerMissing:
    # The failure is cached, too: a mirror that does not respond is tried once per run.
    try:
        with cache_folder("spark-kafka") as cache:
            fill = functools.partial(_copy, spark_version)
            return sorted(fill_folder_once(cache / spark_version, fill).glob("*.jar"))
    except PeerMissing as missing:
        return missing


def _copy(spark_version: str, folder: Path) -> None:
    _copy_first("spark-sql-kafka-0-10_2.13", (spark_version, *CONNECTOR_VERSIONS), folder)
    _copy_first("spark-token-provider-kafka-0-10_2.13", (spark_version, *TOKEN_VERSIONS), folder)
    copy_without_dependencies([KAFKA_CLIENTS, POOL], folder)


def _copy_first(name: str, versions: tuple[str, ...], folder: Path) -> None:
    """Copy the first available version."""
    for version in versions[:-1]:
        try:
            return copy_without_dependencies([Artifact(SPARK, name, version)], folder)
        except PeerMissing:
            continue
    return copy_without_dependencies([Artifact(SPARK, name, versions[-1])], folder)
