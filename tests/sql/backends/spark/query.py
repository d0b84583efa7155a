"""`python -m tests.sql.backends.spark.query`: a query in a process of its own, to be killed.

It copies the topic "in" to the topic "out" in small micro-batches, until it is through.
"""

import sys
from typing import Any

from sql.backends.spark.session import open_session
from tests.support.spark import MASTER, SETTINGS


def source(spark: Any, servers: str, topic: str, **options: str) -> Any:
    """A stream of a topic from its beginning."""
    reader = spark.readStream.format("millstream").option("bootstrap_servers", servers)
    given = {"starting_offsets": "earliest", "tasks": "2", **options}
    return reader.option("topics", topic).options(**given).load()


def sink(stream: Any, servers: str, topic: str, checkpoint: str, **options: str) -> Any:
    """The query that writes a stream to a topic, all that is there now."""
    writer = stream.writeStream.format("millstream").option("bootstrap_servers", servers)
    writer = writer.option("topic", topic).option("checkpointLocation", checkpoint)
    return writer.options(**options).trigger(availableNow=True).start()


def main() -> None:
    """Run the query to its end."""
    servers, checkpoint, most = sys.argv[1:]
    spark = open_session(MASTER, SETTINGS)
    stream = source(spark, servers, "in", max_offsets_per_trigger=most, group_id="copying")
    sink(
        stream.select("key", "value"), servers, "out", checkpoint, sink_id="copy"
    ).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
