"""Metrics of an instance in Prometheus' text format.

Runners and tasks only add to totals; averages, lags and sizes are computed at each scrape.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.exposition import Exposition
from streams.errors import StoreNotReady
from streams.runtime.app_state import AppState
from streams.runtime.owned_task import OwnedTask, Phase
from streams.runtime.runner_metrics import RunnerMetrics
from streams.runtime.task_metrics import PROCESSED, TaskMetrics
from streams.state.task_state import TaskState
from streams.topology import SinkNode, SourceNode, Topology

if TYPE_CHECKING:
    from streams.runtime.instance import Instance

PREFIX = "millstream_streams"
GLOBAL = "global"  # the label of the task that fills global stores
NANOSECONDS = 1e-9

HELP = {
    "state": "1 for the state that the application is in",
    "runners_alive": "Running runners (threads)",
    "runners_failed_total": "Runners that stopped because of an error",
    "rocksdb_memory_bytes": "Block cache and write buffers of all RocksDB stores of the process",
    "runner_polls_total": "Polls of the consumer",
    "runner_poll_seconds_total": "Time spent in polls, including waiting for records",
    "runner_poll_seconds_max": "The longest poll",
    "runner_poll_seconds_average": "Average time of a poll",
    "runner_batches_consumed_total": "Record batches fetched",
    "runner_records_consumed_total": "Records fetched",
    "runner_records_consumed_per_second": "Records fetched per second, recently",
    "runner_records_processed_total": "Records processed",
    "runner_records_processed_per_second": "Records processed per second, recently",
    "runner_process_seconds_total": "Time spent processing",
    "runner_process_seconds_max": "The longest round of processing, which covers many records",
    "runner_process_seconds_average": "Average time to process a record",
    "runner_punctuations_total": "Punctuators run",
    "runner_punctuate_seconds_total": "Time spent in punctuators",
    "runner_punctuate_seconds_max": "The longest round of punctuators",
    "runner_punctuate_seconds_average": "Average time of a punctuator",
    "runner_commits_total": "Commits that succeeded",
    "runner_commit_seconds_total": "Time spent in commits",
    "runner_commit_seconds_max": "The longest commit",
    "runner_commit_seconds_average": "Average time of a commit",
    "runner_records_produced_total": "Records written, including changelog records",
    "runner_records_produced_per_second": "Records written per second, recently",
    "runner_bytes_produced_total": "Bytes of record batches written",
    "runner_restored_records_total": "Changelog records restored into stores",
    "runner_restore_remaining": "Changelog offsets that restoring tasks still have to read",
    "runner_tasks_active": "Active tasks",
    "runner_tasks_standby": "Standby tasks",
    "runner_tasks_migrated_total": "Tasks that restarted from their last commit",
    "runner_rebalances_total": "Assignments received from the group",
    "task_phase": "1 for the phase that the task is in",
    "task_records_in_total": "Records read from the inputs",
    "task_records_out_total": "Records passed to sinks",
    "task_process_seconds_total": "Time spent processing",
    "task_process_seconds_average": "Average time to process a record",
    "task_dropped_records_total": "Records dropped: late, without a key, or refused by a handler",
    "task_dead_letters_total": "Records sent to the dead letter topic",
    "task_enforced_processing_total": "Times that the task stopped waiting for an empty input",
    "task_punctuate_total": "Punctuators run",
    "task_commit_total": "Commits",
    "task_buffered_records": "Records fetched and not yet processed",
    "task_stream_time_ms": "The largest timestamp seen, -1 before the first",
    "task_stream_time_age_seconds": "How far the stream time is behind the clock",
    "task_dirty_bytes": "Store changes since the last commit",
    "task_memory_bytes": "Memory of stores, without RocksDB's own",
    "task_committed_offset": "The next offset to read after a crash",
    "task_committed_lag": "Offsets of an input that are not committed yet",
    "task_position_lag": "Offsets of an input that are not processed yet",
    "node_process_total": "Records at a source or sink; at every node if the level is DEBUG",
    "store_entries": "Approximate number of rows of a store",
    "store_bytes": "Approximate size of its rows",
    "store_changelog_position": "The next offset of the changelog to restore from",
    "store_restore_remaining": "Changelog offsets that are not restored yet",
}
_AVERAGES = {"poll": "polls", "process": "records_processed", "punctuate": "punctuations"}
_AVERAGES["commit"] = "commits"


class Page:
    """The metrics of an instance; names that end in _total are counters."""

    def __init__(self) -> None:
        self._out = Exposition()

    def add(self, name: str, value: float, **labels: str) -> None:
        """One sample."""
        full = f"{PREFIX}_{name}"
        if full not in self._out:
            kind = "counter" if name.endswith("_total") else "gauge"
            self._out.family(full, kind, HELP[name])
        self._out.sample(full, value, **labels)

    def add_page(self, text: str, **labels: str) -> None:
        """All samples of another page, with additional labels."""
        self._out.add_page(text, **labels)

    def text(self) -> str:
        """The page in Prometheus' text format."""
        return self._out.text()


def metrics_text(instance: "Instance", state: AppState) -> str:
    """The metrics of an application's runners, tasks, nodes and stores."""
    page = Page()
    application = instance.application_id
    for each in AppState:
        page.add("state", int(each is state), application=application, state=each.name)
    runners = list(instance.runners)
    page.add("runners_alive", len(runners), application=application)
    page.add("runners_failed_total", instance.failed_runners, application=application)
    page.add("rocksdb_memory_bytes", instance.databases.memory_bytes, application=application)
    for runner in runners:
        _add_runner(page, {"application": application, "runner": runner.name}, runner.metrics)
    topology = instance.topology
    for owned in instance.tasks():
        labels = {"application": application, "task": str(owned.task_id)}
        _add_task(page, labels, owned, instance.now_ms())
        if owned.task is not None:
            _add_counters(page, labels, owned.task.metrics, topology)
    global_state = instance.global_state()
    if global_state is not None:
        labels = {"application": application, "task": GLOBAL}
        _add_stores(page, labels, global_state[0])
        _add_counters(page, labels, global_state[1], topology)
    return page.text()


def _add_runner(page: Page, labels: Mapping[str, str], metrics: RunnerMetrics) -> None:
    values = dict(metrics.items())
    for name, value in values.items():
        if "nanoseconds" in name:
            name, value = name.replace("nanoseconds", "seconds"), value * NANOSECONDS
        page.add(f"runner_{name}", value, **labels)
    for action, counted in _AVERAGES.items():
        elapsed_ns, count = values[f"{action}_nanoseconds_total"], values[f"{counted}_total"]
        page.add(f"runner_{action}_seconds_average", _average(elapsed_ns, count), **labels)


def _add_task(page: Page, labels: Mapping[str, str], owned: OwnedTask, now_ms: int) -> None:
    for phase in Phase:
        page.add("task_phase", int(owned.phase is phase), **labels, phase=phase.value)
    page.add("task_dirty_bytes", owned.state.dirty_bytes, **labels)
    page.add("task_memory_bytes", owned.state.memory_bytes, **labels)
    task = owned.task
    if task is not None:
        time_ms = task.stream_time_ms
        page.add("task_buffered_records", task.buffered_total, **labels)
        page.add("task_stream_time_ms", time_ms, **labels)
        if time_ms >= 0:
            page.add("task_stream_time_age_seconds", (now_ms - time_ms) / 1000, **labels)
    _add_stores(page, labels, owned.state)
    for store, position in list(owned.positions.items()):
        page.add("store_changelog_position", position, **labels, store=store)
    for store, end in list(owned.restore_ends.items()):
        remaining = max(0, end - owned.positions.get(store, 0))
        waits = owned.phase is Phase.RESTORING
        page.add("store_restore_remaining", remaining if waits else 0, **labels, store=store)
    for (topic, partition), offset in list(owned.committed.items()):
        at = {**labels, "topic": topic, "partition": str(partition)}
        page.add("task_committed_offset", offset, **at)
    for tp, end in list(owned.ends.items()):
        at = {**labels, "topic": tp.topic, "partition": str(tp.partition)}
        processed = owned.processed.get(tp, 0)
        page.add("task_position_lag", max(0, end - processed), **at)
        page.add("task_committed_lag", max(0, end - owned.committed.get(tp, 0)), **at)


def _add_stores(page: Page, labels: Mapping[str, str], state: TaskState) -> None:
    try:
        sizes = state.sizes()
    except StoreNotReady:
        return  # the task is being closed
    for store, (entries, size_bytes) in sizes.items():
        page.add("store_entries", entries, **labels, store=store)
        page.add("store_bytes", size_bytes, **labels, store=store)


def _add_counters(
    page: Page, labels: Mapping[str, str], metrics: TaskMetrics, topology: Topology
) -> None:
    counted = list(metrics.items())
    for name, node, value in counted:
        plain = name.replace("-", "_")
        if node:
            page.add(f"node_{plain}", value, **labels, node=node)
        elif "nanoseconds" in plain:
            page.add(
                f"task_{plain.replace('nanoseconds', 'seconds')}", value * NANOSECONDS, **labels
            )
        else:
            page.add(f"task_{plain}", value, **labels)
    nodes = {node: value for name, node, value in counted if name == PROCESSED}
    elapsed_ns = sum(value for name, _, value in counted if "nanoseconds" in name)
    records_in = _sum_at(nodes, _names(topology, SourceNode))
    page.add("task_records_in_total", records_in, **labels)
    page.add("task_records_out_total", _sum_at(nodes, _names(topology, SinkNode)), **labels)
    page.add("task_process_seconds_average", _average(elapsed_ns, records_in), **labels)


def _names(topology: Topology, kind: type[SourceNode | SinkNode]) -> set[str]:
    nodes = [node for sub in topology.sub_topologies for node in sub.nodes]
    nodes += [store.source for store in topology.global_stores.values()]
    return {node.name for node in nodes if isinstance(node, kind)}


def _sum_at(counted: Mapping[str, int], nodes: Iterable[str]) -> int:
    return sum(counted.get(node, 0) for node in nodes)


def _average(elapsed_ns: float, count: float) -> float:
    return elapsed_ns * NANOSECONDS / count if count else 0.0
