"""JDBC: tables to topics and topics to tables."""

import argparse

from benchmarks.connect import by_hand
from benchmarks.connect.bench import JSON, Bench, bench
from benchmarks.connect.orders import Database, databases
from benchmarks.report import Report

# The default of --records is too large for databases.
SHARE_OF_RECORDS = 10


def measure_jdbc(report: Report, options: argparse.Namespace) -> None:
    """Tables to topics and topics to tables, in every database."""
    with bench(report, options, share=SHARE_OF_RECORDS) as running:
        for database in databases(report):
            database.create_table("orders")
            database.fill("orders", running.count)
            _measure_source(running, database)
            _measure_sink(running, database)


def _source(database: Database, topic: str, *, schemas: bool) -> dict[str, str]:
    return {
        "connector.class": "JdbcSource",
        **database.settings,
        "query": "SELECT * FROM orders",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": topic,
        "batch.max.rows": str(by_hand.FETCHED_ROWS),
        "value.converter": JSON,
        "value.converter.schemas.enable": "true" if schemas else "false",
    }


def _measure_source(running: Bench, database: Database) -> None:
    def ours() -> float:
        topic = running.new_topic()
        config = _source(database, topic, schemas=False)
        return running.seconds(config, lambda: running.records(topic))

    def theirs() -> float:
        return by_hand.table_to_topic(running.bootstrap, database, running.new_topic())

    running.compare(f"{database.name}: JDBC source", ours, theirs)


def _measure_sink(running: Bench, database: Database) -> None:
    topic = running.new_topic()
    running.seconds(_source(database, topic, schemas=True), lambda: running.records(topic))
    config = {
        "connector.class": "JdbcSink",
        **database.settings,
        "topics": topic,
        "table.name.format": "copied",
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "consumer.override.max.poll.records": str(by_hand.WRITTEN_ROWS),
        "value.converter": JSON,
        "value.converter.schemas.enable": "true",
    }

    def ours() -> float:
        database.create_table("copied")
        return running.seconds(config, lambda: database.count("copied"))

    def theirs() -> float:
        database.create_table("copied")
        return by_hand.topic_to_table(running.bootstrap, topic, database, running.count)

    running.compare(f"{database.name}: JDBC sink", ours, theirs)
