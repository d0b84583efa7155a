"""QueryRun: a persistent query on the test driver, one record at a time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from broker.serde import BytesSerde
from broker.serde.registry.api import SchemaRegistry
from sql.backends.native.steps import ProcessingLog, StepContext, ignore_errors
from sql.backends.native.topology import add_query, application_id
from sql.plan import Sink, topics_read
from streams.config import StreamsConfig
from streams.dsl.builder import StreamsBuilder
from streams.handlers import Answer, Failure
from streams.record import Headers
from streams.state.store import StoreKind, TimestampedKeyValueStore
from streams.testing import TopologyTestDriver

# Any: the stores of any query.
AnyStore = TimestampedKeyValueStore[Any, Any]

SERVICE_ID = "some.ksql.service.id"
EMIT_INTERVAL = "__emit.interval.ms.kstreams.windowed.aggregation__"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record of a topic, as bytes."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers = ()


class QueryRun:
    """An open topology of a query; a context manager."""

    def __init__(
        self,
        query_id: str,
        plan: Sink,
        registry: SchemaRegistry,
        settings: Mapping[str, object],
        log: ProcessingLog = ignore_errors,
    ) -> None:
        builder = StreamsBuilder()
        context = StepContext(builder, registry, log, dict(settings))
        add_query(plan, context)
        self.source_topics = topics_read(plan)
        self.sink_topic = plan.topic
        config = StreamsConfig.from_properties(
            {
                "application_id": application_id(SERVICE_ID, query_id),
                "statestore_cache_max_bytes": 0,
                "deserialization_exception_handler": _logging_handler(log),
                "extra": {EMIT_INTERVAL: 0},
                **_extractor(settings),
            }
        )
        self._driver = TopologyTestDriver(builder.build(), config=config)
        self._output = self._driver.create_output_topic(
            plan.topic, key=BytesSerde(), value=BytesSerde()
        )

    def feed(self, topic: str, record: TopicRecord) -> list[TopicRecord]:
        """Process a record completely; returns the output records."""
        row = (record.key, record.value, record.timestamp_ms, record.headers, 0)
        self._driver.pipe_batch([(topic, row)])
        return list(self._results())

    @property
    def topics(self) -> frozenset[str]:
        """All topics with records, including internal ones."""
        return self._driver.produced_topic_names

    @property
    def internal_topics(self) -> Iterable[str]:
        """The query's repartition topics, whether they are used or not."""
        return self._driver.topology.repartition_topics

    def tables(self) -> Iterable[tuple[str, AnyStore]]:
        """The stores of tables by key, with their names."""
        for name, spec in self._driver.topology.stores.items():
            if spec.kind is StoreKind.TIMESTAMPED_KEY_VALUE:
                yield name, self._driver.get_timestamped_key_value_store(name)

    def take_over(self, old: "QueryRun") -> None:
        """Continue with the tables of a query that this one replaces."""
        before = dict(old.tables())
        for name, store in self.tables():
            if name in before:
                for key, (value, timestamp_ms) in before[name].all():
                    store.put(key, value, timestamp_ms)

    def _results(self) -> Iterable[TopicRecord]:
        while not self._output.is_empty:
            found = self._output.read_logged()
            yield TopicRecord(found.key, found.value, found.timestamp_ms, found.headers)

    def close(self) -> None:
        """Close the stores."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _logging_handler(log: ProcessingLog) -> Callable[[Failure], Answer]:
    def handle(failure: Failure) -> Answer:
        log(failure.node, failure.error, None)
        return Answer.CONTINUE

    return handle


def _extractor(settings: Mapping[str, object]) -> dict[str, object]:
    """The handling of records without a valid time, by the class in the setting."""
    name = str(settings.get("ksql.streams.default.timestamp.extractor", ""))
    return {"default_timestamp_extractor": "log_and_skip"} if "LogAndSkip" in name else {}
