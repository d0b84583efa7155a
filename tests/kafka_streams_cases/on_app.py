"""Runs a case as an application on a broker: all inputs are there when it starts.

What is expected along the script is expected in all, topic by topic; stores and metrics are looked
at when everything is processed. So a case can run here when its inputs are taken in the order of
their times, and when nothing depends on the moments of commits.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.opening import Target
from broker.model import TopicPartition
from streams.app import AppState, StreamsApp
from streams.errors import StoreNotReady
from streams.topology import SourceNode, Topology
from tests.kafka_streams_cases.build import BuiltCase, build_case
from tests.kafka_streams_cases.compare import Mismatch, compare_records
from tests.kafka_streams_cases.harness import (
    RawRecord,
    raw_input,
    row,
    settings,
    value_and_time,
)
from tests.kafka_streams_cases.run import compare_metric, compare_store
from tests.support.peer import wait_until
from tests.support.topics import read_topic

COMMIT_INTERVAL_MS = 50
LATEST = -1


def run_on_app(
    case: Mapping[str, Any],
    target: Target,
    *,
    application_id: str,
    state_directory: Path,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Raise Mismatch unless all is as the case expects; `more` are settings beside the case's."""
    built = build_case(case)
    topics = sorted({*built.sources, *built.sinks})
    with admin(target) as administration:
        administration.create_topics([NewTopic(topic, built.partitions) for topic in topics]).all()
    _write(target, list(_inputs(case, built)))
    app = StreamsApp(
        built.topology,
        application_id=application_id,
        broker=target,
        state_dir=str(state_directory),
        commit_interval_ms=COMMIT_INTERVAL_MS,
        poll_ms=10,
        **settings({**case.get("config", {}), **(more or {})}),
    )
    with app:
        _wait_until_processed(app, target)
        for action in case["script"]:
            if "store" in action:
                compare_store(action, _rows(app, action["store"]), built.stores[action["store"]])
            # A task that has moved to another runner counts from zero.
            elif "metric" in action and len(app.runners) == 1:
                compare_metric(action, _metric(app, action["metric"]))
    _compare_topics(case, built, target)


def clear(target: Target) -> None:
    """Delete all topics, so that the next case may use the same names."""
    with admin(target) as administration:
        administration.delete_topics(administration.list_topics()).all()


def _inputs(case: Mapping[str, Any], built: BuiltCase) -> Iterator[RawRecord]:
    for action in case["script"]:
        for item in action.get("in_batch", [action]):
            if "in" in item:
                yield raw_input(item, built.sources[item["in"]])


def _write(target: Target, records: list[RawRecord]) -> None:
    with producer(target) as out:
        for record in records:
            out.send(
                record.topic,
                record.value,
                record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=record.headers,
            )


def _wait_until_processed(app: StreamsApp, target: Target) -> None:
    """Wait until the application has committed the ends of all that it reads.

    Commits are read before ends: what a committed record was made into is written before, so
    nothing can be on its way when the two are equal.
    """
    group = app.config.application_id
    with admin(target) as administration:

        def all_is_committed() -> bool:
            if app.state is AppState.ERROR:
                raise app.error or Mismatch("the application ended")
            topics = _topics_read(app.topology, group, administration.list_topics())
            described = administration.describe_topics(topics).all()
            read = [
                TopicPartition(topic, number)
                for topic in topics
                for number in range(len(described[topic].partitions))
            ]
            committed = administration.list_group_offsets(group).values
            ends = administration.list_offsets(dict.fromkeys(read, LATEST)).all()
            return not any(
                _has_records(target, tp, committed[tp].offset if tp in committed else 0, end.offset)
                for tp, end in ends.items()
            )

        wait_until(all_is_committed, "that everything is committed")


def _has_records(target: Target, tp: TopicPartition, start: int, end: int) -> bool:
    """Whether there are records in a span of a partition: ends of transactions are none."""
    if start >= end:
        return False
    with consumer(target, isolation_level="read_committed") as reader:
        reader.assign([tp])
        reader.seek(tp, start)
        while reader.position(tp) < end:
            if reader.poll(timeout_ms=100):
                return True
    return False


def _topics_read(topology: Topology, group: str, existing: Mapping[str, object]) -> list[str]:
    """Topics of sources; repartition topics have the application's id in front."""
    names: set[str] = set()
    for sub in topology.sub_topologies:
        for node in sub.nodes:
            if isinstance(node, SourceNode):
                pattern = node.pattern or re.compile("(?!)")
                names.update(name for name in existing if pattern.fullmatch(name))
                names.update(
                    f"{group}-{topic}" if topic in topology.repartition_topics else topic
                    for topic in node.topics
                )
    return sorted(names & set(existing))


def _rows(app: StreamsApp, store: str) -> list[tuple[object, object, int | None]]:
    """All of a store, as soon as it can be read: tasks may just be moving between runners."""
    kind = app.topology.stores[store].kind
    found: list[tuple[object, object, int | None]] = []

    def can_be_read() -> bool:
        try:
            found[:] = [
                (key, *value_and_time(kind, value))
                for key, value in app.store(store, timestamped=True).all()
            ]
        except StoreNotReady:
            return False
        return True

    wait_until(can_be_read, f'that the store "{store}" can be read')
    return found


def _metric(app: StreamsApp, name: str) -> float:
    """The sum of a metric over its labels, out of the text of all metrics."""
    wanted = re.compile(rf"\w*{name.replace('-', '_')}(?:{{.*}})? (\S+)")
    lines = app.metrics_text().splitlines()
    return sum(float(match[1]) for match in map(wanted.fullmatch, lines) if match)


def _compare_topics(case: Mapping[str, Any], built: BuiltCase, target: Target) -> None:
    expected: dict[str, dict[str, Any]] = {}
    for action in case["script"]:
        if "expect" in action or "expect_none" in action:
            topic = action.get("expect", action.get("expect_none"))
            whole = expected.setdefault(topic, {"expect": topic, "records": []})
            whole["records"] += action.get("records", [])
            whole |= {name: True for name in ("any_order", "last_per_key") if action.get(name)}
    for topic, action in expected.items():
        # Between partitions there is no order.
        action["any_order"] = action.get("any_order") or built.partitions > 1
        found = [
            RawRecord(topic, item.key, item.value, item.timestamp_ms, tuple(item.headers))
            for item in read_topic(target, topic, committed=True)
        ]
        compare_records(action, [row(record, built.sinks[topic]) for record in found])
