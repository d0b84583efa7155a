"""The workloads in hand-written PySpark, with the same source and sink.

Where Spark has no equivalent, the closest operation is used: tables are read once, and aggregates
are emitted once per batch. So this is a lower bound of Spark's own time.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as f

ORDER = "ORDER_ID bigint, SHOP string, ITEM string, CENTS bigint"
VIEW = "PAGE string, STAY int"
SHOP = "CITY string, FEE bigint"
CUSTOMER = "NAME string, COUNTRY string, LEVEL int"

# Sessions and frames are Any: PySpark has no types here.


class SparkTopics:
    """Reads and writes topics of one cluster."""

    def __init__(self, spark: Any, servers: str) -> None:
        self._spark = spark
        self._servers = servers

    def stream(self, topic: str, schema: str) -> Any:
        """Stream the rows of a topic."""
        return self._rows(self._spark.readStream, topic, schema)

    def table(self, topic: str, schema: str) -> Any:
        """Read the latest row of each key, once."""
        rows = self._rows(self._spark.read, topic, schema)
        last = rows.groupBy("key").agg(f.max_by(f.struct("*"), "offset").alias("row"))
        return last.select("row.*").drop("offset", "moment")

    def _rows(self, reader: Any, topic: str, schema: str) -> Any:
        given = {"bootstrap_servers": self._servers, "topics": topic, "include_headers": "false"}
        records = reader.format("millstream").options(starting_offsets="earliest", **given).load()
        row = f.from_json(f.col("value").cast("string"), schema)
        return records.select(
            f.col("key").cast("string").alias("key"),
            "offset",
            f.timestamp_millis("timestamp").alias("moment"),
            row.alias("row"),
        ).select("key", "offset", "moment", "row.*")

    def write(self, frame: Any, topic: str, checkpoint: str, *, mode: str = "append") -> Any:
        """Start a query that writes all available rows: `key`, and the other columns as JSON."""
        given = {"bootstrap_servers": self._servers, "topic": topic}
        if mode == "append":
            writer = _records(frame).writeStream.format("millstream").options(**given)
        else:

            def each(batch: Any, number: int) -> None:
                # Python sinks do not support updates: write the rows of each batch as a DataFrame.
                del number
                _records(batch).write.format("millstream").mode("append").options(**given).save()

            writer = frame.writeStream.foreachBatch(each).outputMode(mode)
        return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def _records(frame: Any) -> Any:
    columns = [name for name in frame.columns if name != "key"]
    return frame.select("key", f.to_json(f.struct(*columns)).alias("value"))


def filtered(topics: SparkTopics) -> Any:
    """Orders above a price."""
    orders = topics.stream("orders", ORDER).where("CENTS > 9000")
    item = f.upper("ITEM").alias("ITEM")
    return orders.select("key", "ORDER_ID", item, "CENTS", f.expr("CENTS div 100 AS WHOLE"))


def enriched(topics: SparkTopics) -> Any:
    """Orders joined with shops, which are read once."""
    shops = topics.table("shops", SHOP).withColumnRenamed("key", "shop_key")
    joined = topics.stream("orders", ORDER).join(shops, f.col("SHOP") == f.col("shop_key"))
    left = (f.col("CENTS") - f.col("FEE")).alias("CENTS_LEFT")
    customer = f.col("key").alias("CUSTOMER")
    return joined.select(f.col("SHOP").alias("key"), customer, "ORDER_ID", "CITY", left)


def tumbling(topics: SparkTopics) -> Any:
    """Sales of a shop per minute, emitted once per batch."""
    orders = topics.stream("orders", ORDER).withWatermark("moment", "1 day")
    grouped = orders.groupBy(f.col("SHOP").alias("key"), f.window("moment", "1 minute"))
    return grouped.agg(
        f.count("*").alias("ORDERS"), f.sum("CENTS").alias("CENTS"), f.max("CENTS").alias("LARGEST")
    )


def sessions(topics: SparkTopics) -> Any:
    """Visits, emitted when they are over."""
    views = topics.stream("views", VIEW).withWatermark("moment", "1 minute")
    grouped = views.groupBy("key", f.session_window("moment", "30 seconds"))
    return grouped.agg(f.count("*").alias("PAGES"), f.sum("STAY").alias("STAY"))


def streams(topics: SparkTopics) -> Any:
    """Orders joined with the views of the preceding seconds."""
    orders = topics.stream("orders", ORDER).withWatermark("moment", "1 day").alias("o")
    views = topics.stream("views", VIEW).withWatermark("moment", "1 day").alias("v")
    close = f.expr("o.key = v.key AND v.moment BETWEEN o.moment - INTERVAL 3 SECONDS AND o.moment")
    return orders.join(views, close).select("o.key", "ORDER_ID", "ITEM", "PAGE")


def tables(topics: SparkTopics) -> Any:
    """The spending of each customer, emitted once per batch; customers are read once."""
    customers = topics.table("customers", CUSTOMER)
    spent = topics.stream("orders", ORDER).groupBy("key")
    totals = spent.agg(f.count("*").alias("ORDERS"), f.sum("CENTS").alias("CENTS"))
    bonus = f.expr("CENTS * LEVEL div 100 AS BONUS")
    return totals.join(customers, "key").select("key", "NAME", "COUNTRY", "ORDERS", bonus)


# The function that builds each workload, and its output mode.
BY_HAND: dict[str, tuple[Callable[[SparkTopics], Any], str]] = {
    "filter": (filtered, "append"),
    "enrich": (enriched, "append"),
    "tumbling": (tumbling, "update"),
    "session": (sessions, "append"),
    "streams": (streams, "append"),
    "tables": (tables, "update"),
}
