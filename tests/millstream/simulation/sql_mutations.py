"""Mutations of the SQL server and the schema registry; see mutation.py."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from broker.client import producer
from broker.client.positions import PartitionState
from broker.client.record_consumer import Consumer
from broker.errors import MillstreamError
from broker.registry.registry import Registry
from broker.registry.schema_log import SchemaLog
from sql.backends.native import aggregating, joining, materialized, sources, stateless
from sql.backends.native.rows import stored_rows
from sql.command_log import CommandLog
from sql.engine import engine
from sql.engine.commands import Commands
from sql.engine.follower import RETRY, Follower
from sql.engine.launching import QueryLauncher
from sql.queries import AppRuntime, Supervisor
from streams.runtime.runner_loop import RunnerLoop
from tests.millstream.simulation.mutation import mutation


@mutation("2: a restart plans queries again, under today's settings", needs="sql", found_in=1)
def planned_again() -> Iterator[None]:
    with (
        patch.object(Commands, "_replayed", Commands._planned_again),
        patch.object(Commands, "_pin", lambda self, log: None),
    ):
        yield


@mutation("3: stored rows have no versions", needs="sql", found_in=3)
def unversioned_rows() -> Iterator[None]:
    def unversioned(columns: Any, earlier: Any = ()) -> Any:
        return stored_rows(columns)

    with ExitStack() as opened:
        for module in (aggregating, joining, materialized, sources, stateless):
            opened.enter_context(patch.object(module, "stored_rows", unversioned))
        yield


@mutation("14: a paused query reads on", needs="sql", found_in=1)
def paused_reads() -> Iterator[None]:
    def pause(loop: RunnerLoop) -> None:
        loop._paused = True

    with patch.object(RunnerLoop, "_pause_reading", pause):
        yield


@mutation(
    "16: the thread that restarts queries ends at the first unexpected error",
    needs=("sql", "no descriptors for a restart"),
    found_in=3,
)
def unguarded_supervisor() -> Iterator[None]:
    fail, try_again = AppRuntime._fail, AppRuntime._try_again
    unexpected: list[BaseException] = []

    def note(runtime: AppRuntime, error: BaseException) -> None:
        if not isinstance(error, MillstreamError):
            unexpected.append(error)
        fail(runtime, error)

    def let_out(runtime: AppRuntime) -> None:
        # `start` catches all errors: without that, too, the thread got those it did not expect.
        unexpected.clear()
        try_again(runtime)
        if unexpected:
            raise unexpected.pop()

    with (
        patch.object(Supervisor, "_act", lambda self, action, failures: action()),
        patch.object(AppRuntime, "_fail", note),
        patch.object(AppRuntime, "_try_again", let_out),
    ):
        yield


@mutation("16: the thread that follows commands ends at the first error", needs="sql", found_in=14)
def unguarded_follower() -> Iterator[None]:
    def run(follower: Follower) -> None:
        while True:
            with follower._changed:
                if not follower._closed:
                    follower._clock.wait(follower._changed, RETRY.initial_ms)
                if follower._closed:
                    return
            follower._commands.follow()

    with patch.object(Follower, "_run", run):
        yield


@mutation("16: a query in ERROR that is dropped leaves its state", needs="sql", found_in=5)
def failed_queries_stay() -> Iterator[None]:
    real = AppRuntime.discard

    def discard(runtime: AppRuntime) -> None:
        if runtime._app is not None:
            real(runtime)
        else:
            runtime.stop()

    def discard_ended(launcher: QueryLauncher, query_ids: Sequence[str]) -> None:
        """Restarts did not look for what was left."""

    with (
        patch.object(AppRuntime, "discard", discard),
        patch.object(QueryLauncher, "discard", discard_ended),
    ):
        yield


@mutation(
    "16b: the end of an input is forgotten with each answer of shared reads",
    needs="sql",
    found_in=11,
)
def forgotten_ends() -> Iterator[None]:
    def learn(state: PartitionState, high: int, stable: int, start: int) -> None:
        state.high_watermark, state.last_stable_offset = high, stable
        state.log_start_offset = start

    def lag(consumer: Consumer, tp: Any) -> int | None:
        state = consumer._positions.state(tp)
        end = state.end(consumer._config.isolation)
        return None if state.position < 0 or end < 0 else max(0, end - state.position)

    with (
        patch.object(PartitionState, "learn", learn),
        patch.object(Consumer, "current_lag", lag),
    ):
        yield


@mutation("a paused query runs again after a restart", needs="sql", found_in=4)
def forgotten_pauses() -> Iterator[None]:
    with patch.object(AppRuntime, "start", _unpaused(AppRuntime.start)):
        yield


def _unpaused(start: Any) -> Any:
    def start_unpaused(runtime: AppRuntime) -> None:
        runtime._paused = False
        start(runtime)

    return start_unpaused


@mutation("an INSERT is acknowledged before it is sent", needs="sql", found_in=10)
def early_inserts() -> Iterator[None]:
    def open_producer(target: Any, **settings: Any) -> Any:
        return _Unwaited(producer(target, **{**settings, "linger_ms": 1_000}))

    with patch.object(engine, "producer", open_producer):
        yield


class _Unwaited:
    """A producer whose deliveries are not waited for."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def send(self, *given: Any, **named: Any) -> Any:
        self._out.send(*given, **named)
        return self

    def result(self, timeout_ms: int) -> None:
        """It is done as soon as it is asked for."""

    def close(self) -> None:
        self._out.close()


@mutation("a command that another server was about to commit is not read", needs="sql", found_in=1)
def unfinished_commands() -> Iterator[None]:
    with patch.object(CommandLog, "unread", _all_but_last(CommandLog.unread)):
        yield


def _all_but_last(unread: Any) -> Any:
    """At a start the last command is taken for one that was not committed."""

    def short(log: CommandLog) -> Any:
        is_first = log._next_offset == 0
        found = list(unread(log))
        return found[:-1] if is_first else found

    return short


@mutation("the registry gives ids again after a restart", needs="registry", found_in=1)
def ids_again() -> Iterator[None]:
    real = Registry.start

    def start(registry: Registry) -> None:
        real(registry)
        for context in registry._state._contexts.values():
            context.max_id = max(0, context.max_id - 1)

    with patch.object(Registry, "start", start):
        yield


@mutation("the registry acknowledges a change before it is committed", needs="registry", found_in=1)
def early_registrations() -> Iterator[None]:
    def write(log: SchemaLog, encoded: Sequence[tuple[bytes, bytes | None]]) -> None:
        assert log._producer is not None
        log._producer.begin_transaction()
        sent = [
            log._producer.send(log._topic, value, log._spellings.get(key, key), partition=0)
            for key, value in encoded
        ]
        log._next_offset = sent[-1].result().offset + 1
        if log._next_offset % 5:
            log._producer.commit_transaction()
        else:
            log._producer.abort_transaction()

    with patch.object(SchemaLog, "_write", write):
        yield
