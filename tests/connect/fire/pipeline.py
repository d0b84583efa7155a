"""Broker, registry, Connect worker and SQL server, for a pipeline that is set on fire."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.client import admin
from broker.client.administration.values import NewTopic
from broker.client.cluster_admin import Admin
from broker.model import TopicPartition
from broker.registry.registry import Registry
from broker.registry.server import RegistryServer
from tests.connect.fire.tables import Copy, Server, SourceTable
from tests.support.millstream_broker import MillstreamBroker
from tests.support.millstream_worker import MillstreamWorker
from tests.support.peer import wait_until
from tests.support.sql_server import SqlServerProcess

PARTITIONS = 2
LATEST = -1
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}
WORKER_SETTINGS = {
    "exactly.once.source.support": "enabled",
    "consumer.isolation.level": "read_committed",
    "consumer.max.poll.records": "5000",
    # A worker that was killed holds its partitions for as long.
    "consumer.session.timeout.ms": "6000",
    "consumer.heartbeat.interval.ms": "1000",
    "offset.storage.partitions": "2",
    "status.storage.partitions": "1",
}
SQL_SETTINGS = {
    "ksql.streams.processing.guarantee": "exactly_once_v2",
    "ksql.streams.auto.offset.reset": "earliest",
    "ksql.streams.commit.interval.ms": "200",
}
LONG = "org.apache.kafka.connect.converters.LongConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"


@dataclass(slots=True)
class Platform:
    """What runs, and what may be killed."""

    broker: MillstreamBroker
    registry_url: str
    worker: MillstreamWorker
    sql: SqlServerProcess
    admin: Admin

    def output_count(self, topics: list[str]) -> int:
        """Records of some topics, with the markers of their transactions."""
        partitions = [
            TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)
        ]
        found = self.admin.list_offsets(dict.fromkeys(partitions, LATEST))
        return sum(found[partition].offset for partition in partitions)

    def check_health(self) -> None:
        """Raises what a connector failed with."""
        for name in self.worker.client.names():
            status = self.worker.client.status(name)
            for each in (status["connector"], *status["tasks"]):
                assert each["state"] != "FAILED", each.get("trace")


@contextmanager
def running_platform(folder: Path) -> Iterator[Platform]:
    """Everything but the databases, stopped at the end whatever happens."""
    with ExitStack() as stack:
        broker = MillstreamBroker(folder / "broker", settings=BROKER_SETTINGS).start()
        stack.callback(broker.kill)
        registry = stack.enter_context(Registry(broker.bootstrap))
        server = stack.enter_context(RegistryServer(registry, listen="127.0.0.1:0"))
        sql = SqlServerProcess(
            folder / "sql",
            bootstrap=broker.bootstrap,
            registry=server.url,
            settings=SQL_SETTINGS,
        )
        stack.enter_context(sql)
        worker = MillstreamWorker(
            folder / "worker", bootstrap=broker.bootstrap, settings=WORKER_SETTINGS
        ).start()
        stack.callback(worker.kill)
        client = stack.enter_context(admin(broker.bootstrap))
        try:
            yield Platform(broker, server.url, worker, sql, client)
        except BaseException as failed:
            for printed in (worker.printed(), broker.printed(), sql.tail()):
                failed.add_note(printed)
            raise


def connection(server: Server, database: str) -> dict[str, str]:
    """Settings of a connector that must outlive the database."""
    return {
        "connection.url": server.jdbc_url(database),
        "connection.user": server.user,
        "connection.password": server.password,
        "connection.attempts": "100",
        "connection.backoff.ms": "100",
    }


def start_pipeline(platform: Platform, source: SourceTable, copy: Copy) -> str:
    """Table -> topic -> SQL -> topic -> copy; the name of the second topic.

    A row that is marked as deleted leaves the SQL table, which writes a tombstone for it, and the
    sink deletes it from the copy.
    """
    name = source.database
    changes, live = f"{name}-items", f"{name}-live"
    platform.admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in (changes, live)])
    connectors = platform.worker.client
    connectors.create(f"{name}-source", source_config(platform, source, f"{name}-"))
    # SQL takes the columns from the schema that the first rows register.
    wait_until(lambda: platform.output_count([changes]) > 0, "the first rows")
    platform.sql.ask(
        f"CREATE TABLE {name} (id BIGINT PRIMARY KEY)"
        f" WITH (KAFKA_TOPIC='{changes}', KEY_FORMAT='KAFKA', VALUE_FORMAT='AVRO');"
        f"CREATE TABLE {name}_live WITH (KAFKA_TOPIC='{live}', PARTITIONS={PARTITIONS}) AS"
        f" SELECT id, UCASE(name) AS name, amount, quantity FROM {name} WHERE deleted = 0;"
    )
    connectors.create(f"{name}-sink", sink_config(platform, copy, live))
    return live


def source_config(platform: Platform, source: SourceTable, prefix: str) -> Mapping[str, str]:
    """Rows by time and number, with the number as the key."""
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        **connection(source.server, source.database),
        "table.whitelist": "items",
        "mode": "timestamp+incrementing",
        "timestamp.column.name": "changed",
        "incrementing.column.name": "id",
        "topic.prefix": prefix,
        "poll.interval.ms": "100",
        "batch.max.rows": "2000",
        "key.converter": LONG,
        **avro_values(platform),
        "transforms": "key,number,rest",
        "transforms.key.type": f"{TRANSFORMS}.ValueToKey",
        "transforms.key.fields": "id",
        "transforms.number.type": f"{TRANSFORMS}.ExtractField$Key",
        "transforms.number.field": "id",
        "transforms.rest.type": f"{TRANSFORMS}.ReplaceField$Value",
        "transforms.rest.exclude": "id,changed",
    }


def sink_config(platform: Platform, copy: Copy, topic: str) -> Mapping[str, str]:
    """Rows by their key; tombstones delete."""
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        **connection(copy.server, copy.database),
        "topics": topic,
        "tasks.max": "2",
        "table.name.format": copy.table,
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "ID",
        "delete.enabled": "true",
        "auto.create": "true",
        "max.retries": "-1",
        "retry.backoff.ms": "100",
        "key.converter": LONG,
        **avro_values(platform),
    }


def avro_values(platform: Platform) -> dict[str, str]:
    """Values in Avro, whose schemas are in the registry."""
    return {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": platform.registry_url,
    }
