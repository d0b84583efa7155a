"""The data source that reads the topics of a query: Millstream's, or Spark's connector for Kafka.

The connector is available if its jars are: in SPARK_HOME/jars, in "spark.jars", or downloaded
because of "spark.jars.packages" (org.apache.spark:spark-sql-kafka-0-10_2.13 with Spark's version).
Both sources return the same columns, and their records are processed by the same plan. The sink is
always Millstream's: the connector's writes are not transactional.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sql.backends.spark.stages import Staged, to_option
from sql.errors import SqlError

AUTO = "auto"
OURS = "millstream"
KAFKA = "kafka"
CONNECTORS = (AUTO, OURS, KAFKA)
HINT = (
    "add its jar: 'spark.jars.packages' = "
    "'org.apache.spark:spark-sql-kafka-0-10_2.13:<version of Spark>', or do not set "
    "'spark.connector'"
)

# Sessions, frames and columns are Any: PySpark has no type hints for them.


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics that a query reads, and how."""

    servers: str
    topics: tuple[str, ...]
    group_id: str
    starting_offsets: str  # as JSON: {"topic": {"partition": offset}}, -2 earliest, -1 latest
    max_offsets_per_trigger: int | None = None
    client: Mapping[str, str] = field(default_factory=dict)  # "kafka." settings
    tasks: int | None = None  # the maximum number of Spark tasks; only for Millstream's source
    purged_topics: tuple[str, ...] = ()  # their records are deleted when they have been read


def connector(session: Any, wanted: str) -> str:
    """The connector to read with; SqlError if it is not available."""
    if wanted == OURS:
        return OURS
    if has_kafka(session):
        return KAFKA
    if wanted == KAFKA:
        raise SqlError("Spark's connector for Kafka is not available", hint=HINT)
    return OURS


def has_kafka(session: Any) -> bool:
    """Whether Spark has the format "kafka"; sends no request to a cluster."""
    from pyspark.errors import PySparkException

    reading = session.readStream.format(KAFKA).option("kafka.bootstrap.servers", "localhost:1")
    try:
        columns = reading.option("subscribe", "topic").load().columns
    except PySparkException:
        return False
    return "value" in columns


def packing(name: str, tasks: int | None) -> str:
    """The inputs of the assignment of a micro-batch's records to tasks, besides the offsets."""
    return f"{name}/{tasks or 0}"


def records(
    session: Any, name: str, subscription: Subscription, staged: Staged | None = None
) -> Any:
    """The records of topics as a streaming frame, with the columns of records.py.

    With a stage, the frame has the results of the stage.
    """
    if name != KAFKA:
        return _of_ours(session, subscription, staged)
    found = _of_kafka(session, subscription)
    return found if staged is None else staged.applied(found)


def _of_ours(session: Any, subscription: Subscription, staged: Staged | None) -> Any:
    reading = (
        session.readStream.format(OURS)
        .option("bootstrap_servers", subscription.servers)
        .options(**subscription.client)
        .option("topics", ",".join(subscription.topics))
        .option("group_id", subscription.group_id)
        .option("starting_offsets", subscription.starting_offsets)
        .option("max_offsets_per_trigger", str(subscription.max_offsets_per_trigger or 0))
        # Only offsets, so that the connector can continue from the checkpoint.
        .option("packing", packing(OURS, subscription.tasks))
    )
    if subscription.purged_topics:
        reading = reading.option("purged_topics", ",".join(subscription.purged_topics))
    if subscription.tasks is not None:
        reading = reading.option("tasks", str(subscription.tasks))
    if staged is not None:
        reading = reading.option("stage", to_option(staged.stage)).schema(staged.schema)
    return reading.load()


def _of_kafka(session: Any, subscription: Subscription) -> Any:
    from pyspark.sql import functions

    client = {name.replace("_", "."): value for name, value in subscription.client.items()}
    reading = (
        session.readStream.format(KAFKA)
        .options(**client)
        .option("kafka.bootstrap.servers", subscription.servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", ",".join(subscription.topics))
        .option("groupIdPrefix", subscription.group_id)
        .option("startingOffsets", subscription.starting_offsets)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
    )
    if subscription.max_offsets_per_trigger is not None:
        limit = str(subscription.max_offsets_per_trigger)
        reading = reading.option("maxOffsetsPerTrigger", limit)
    return reading.load().select(
        "topic",
        "partition",
        "offset",
        functions.unix_millis("timestamp").alias("timestamp"),
        functions.col("timestampType").alias("timestamp_type"),
        "key",
        "value",
        functions.transform("headers", _header).alias("headers"),
    )


def _header(pair: Any) -> Any:
    from pyspark.sql import functions

    return functions.struct(pair["key"].alias("name"), pair["value"].alias("value"))
