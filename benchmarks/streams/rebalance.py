"""How long tasks pause during a rebalance: from one instance to three, then two, under load.

The application is that of tests/streams/fire, with exactly-once. Its output topics use
LogAppendTime, so the pause of a task is the longest gap between two results of its partition.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random

import orjson

from benchmarks.report import Report
from benchmarks.sides import millstream as our_broker
from broker.client import admin, consumer
from broker.client.api import ConfigChange, ConfigResource
from broker.model import TopicPartition
from tests.streams.fire.harness import BROKER_SETTINGS, Feeder, RunningInstance, make_topics
from tests.streams.fire.shop import PARTITIONS, check_paid, check_totals, make_events
from tests.support.peer import wait_until

ORDERS_PER_S = 400
SLICES_PER_S = 20
PHASE_S = 8.0
OUTPUTS = ("totals", "paid")


def measure_rebalance(report: Report, options: argparse.Namespace) -> None:
    """Measure pauses with 1, 3, then 2 instances; check that no record is lost or duplicated."""
    with our_broker(dict(BROKER_SETTINGS)) as side, tempfile.TemporaryDirectory() as folder:
        bootstrap = side.bootstrap
        make_topics(bootstrap)
        _use_append_time(bootstrap)
        with Feeder(bootstrap) as feeder, ExitStack() as stopping:
            instances = [
                RunningInstance(f"instance-{number}", bootstrap, Path(folder))
                for number in range(3)
            ]
            for instance in instances:
                stopping.callback(instance.stop)
            instances[0].start()
            moments = [_feed(feeder)]
            for instance in instances[1:]:
                instance.start()
            moments.append(_feed(feeder))
            instances[0].stop()
            moments.append(_feed(feeder))
            times, rows = _results(bootstrap, len(feeder.sent))
        check_totals(feeder.sent, rows["totals"])
        check_paid(feeder.sent, rows["paid"])
        for title, (first, last) in zip(("1 instance", "1 -> 3", "3 -> 2"), moments, strict=True):
            gaps = sorted(_longest_gap(each, first, last) for each in times.values())
            report.add(f"pause of a task, {title}, median", "ms", gaps[len(gaps) // 2])
            report.add(f"pause of a task, {title}, longest", "ms", gaps[-1])


def _use_append_time(bootstrap: str) -> None:
    change = ConfigChange("message.timestamp.type", "LogAppendTime")
    with admin(bootstrap) as cluster:
        cluster.alter_configs({ConfigResource("topic", name): [change] for name in OUTPUTS}).all()


def _feed(feeder: Feeder) -> tuple[int, int]:
    """Send steady input; return its start and end, in ms since the epoch."""
    random = Random(len(feeder.sent))
    pause = threading.Event()
    start = time.time()
    for number in range(int(PHASE_S * SLICES_PER_S)):
        feeder.send(make_events(random, ORDERS_PER_S // SLICES_PER_S, len(feeder.sent) // 2))
        pause.wait(max(0.0, start + (number + 1) / SLICES_PER_S - time.time()))
    return int(start * 1000), int(time.time() * 1000)


Rows = dict[str, list[tuple[str, dict[str, object]]]]


def _results(bootstrap: str, count: int) -> tuple[dict[TopicPartition, list[int]], Rows]:
    """Wait for `count` committed results; return their times and contents."""
    times: dict[TopicPartition, list[int]] = {
        TopicPartition(name, number): [] for name in OUTPUTS for number in range(PARTITIONS)
    }
    rows: Rows = {name: [] for name in OUTPUTS}
    with consumer(
        bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as reader:
        reader.assign(times)

        def complete() -> bool:
            for record in reader.poll(100):
                tp = TopicPartition(record.topic, record.partition)
                times[tp].append(record.timestamp_ms)
                value = orjson.loads(record.value or b"null")
                rows[record.topic].append(((record.key or b"").decode(), value))
            return sum(map(len, times.values())) >= count

        wait_until(complete, f"{count} results", timeout_s=120)
    return times, rows


def _longest_gap(times: Iterable[int], first: int, last: int) -> int:
    """The longest time without a result between `first` and `last`."""
    inside = [first, *sorted(each for each in times if first <= each <= last), last]
    return max(later - earlier for earlier, later in pairwise(inside))
