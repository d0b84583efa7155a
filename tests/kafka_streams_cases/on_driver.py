"""Runs a case on the TopologyTestDriver."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.serde import BytesSerde
from streams.config import StreamsConfig
from streams.state.store import StoreSpec
from streams.testing import TopologyTestDriver
from streams.testing.topics import TestOutputTopic
from tests.kafka_streams_cases.build import BuiltCase
from tests.kafka_streams_cases.harness import RawRecord, settings, value_and_time

APPLICATION_ID = "app"
BYTES = BytesSerde()


class DriverHarness:
    """A TopologyTestDriver."""

    def __init__(
        self, built: BuiltCase, config: Mapping[str, Any], state_directory: Path | None = None
    ) -> None:
        """Open the driver."""
        self._topology = built.topology
        self._driver = TopologyTestDriver(
            built.topology,
            config=StreamsConfig.from_properties(
                {"application.id": APPLICATION_ID, **settings(config)}
            ),
            partitions=built.partitions,
            start_ms=config.get("start_wall_clock_ms", 0),
            commit=config.get("commit", "each"),
            state_directory=state_directory,
        )
        self._outputs: dict[str, TestOutputTopic[bytes, bytes]] = {}

    def pipe(self, records: Sequence[RawRecord]) -> None:
        """Put records in their topics, then process them completely."""
        self._driver.pipe_batch(
            (
                record.topic,
                (record.key, record.value, record.timestamp_ms, record.headers, record.partition),
            )
            for record in records
        )

    def read(self, topic: str) -> list[RawRecord]:
        """What was written to a topic since it was read last."""
        output = self._outputs.get(topic)
        if output is None:
            output = self._driver.create_output_topic(topic, key=BYTES, value=BYTES)
            self._outputs[topic] = output
        return [
            RawRecord(topic, record.key, record.value, record.timestamp_ms, record.headers)
            for record in output.read_records_to_list()
        ]

    def advance_wall_clock(self, ms: int) -> None:
        """Let time pass."""
        self._driver.advance_wall_clock_time(ms)

    def commit(self) -> None:
        """Commit now."""
        self._driver.commit()

    def restart(self) -> None:
        """Close, and open again from what is kept."""
        self._driver.restart()

    def rows(self, store: str) -> list[tuple[object, object, int | None]]:
        """All of a store: key, value and the value's time where the store has one."""
        spec = self._spec(store)
        return [
            (key, *value_and_time(spec.kind, value))
            for part in self._driver.get_state_stores(store)
            for key, value in part.all()
        ]

    def _spec(self, store: str) -> StoreSpec:
        found = self._topology.global_stores.get(store)
        return self._topology.stores[store] if found is None else found.spec

    def metric(self, name: str) -> float:
        """The sum of a metric over all tasks and nodes."""
        return self._driver.metric(name)

    def internal_topics(self) -> list[str]:
        """The names of the repartition topics, without the application's id, sorted."""
        return sorted(self._topology.repartition_topics)

    def close(self) -> None:
        """Let go of everything."""
        self._driver.close()


def open_driver(built: BuiltCase, config: Mapping[str, Any]) -> DriverHarness:
    """A driver with its stores in memory."""
    return DriverHarness(built, config)
