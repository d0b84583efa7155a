"""Running queries: each has its own runtime, is supervised, and is restarted after a failure.

                start                 failure                      backoff over
    CREATED ------------> RUNNING <-------------> ERROR ------------------------> RUNNING
                          |     ^
                    pause v     | resume
                          PAUSED

A QueryRuntime is the engine's interface of a running query; AppRuntime is one StreamsApp per query.
The applications of all queries share threads, clients and reads: a SharedRuntime is their broker.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from broker import concurrency
from broker.client.cluster_admin import Admin
from broker.client.opening import Target, admin
from broker.clock import Clock
from broker.errors import (
    AuthenticationFailed,
    BrokerError,
    ClientError,
    ErrorCode,
    MillstreamError,
    SchemaError,
    SerdeError,
    StorageError,
)
from broker.files import FileSystem
from broker.machine import Machine
from broker.model import TopicPartition
from sql.errors import SqlError
from streams.app import AppState, StreamsApp
from streams.errors import (
    BufferOverflow,
    DeserializationFailed,
    InvalidTimestamp,
    StoreNotReady,
    StreamsConfigError,
    StreamsError,
    TopologyError,
)
from streams.runtime.owned_task import Phase
from streams.runtime.shared_runtime import SharedRuntime
from streams.topology import Topology

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_MS = 30_000
LATEST = -1
# How often to check a dropped query that another server still runs: longer than a session.
DISCARD_RETRY_MS = 2_000
DISCARD_TRIES = 30
USER_CODES = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PARTITIONS,
    }
)


# Errors of bytes, schemas, rows and topics are USER errors.
USER_ERRORS = (
    SerdeError,
    SchemaError,
    SqlError,
    AuthenticationFailed,
    TopologyError,
    StreamsConfigError,
    DeserializationFailed,
    InvalidTimestamp,
    BufferOverflow,
)


class QueryState(Enum):
    """The state of a query; see the diagram at the top."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"


class FailureType(Enum):
    """The cause of a failure: the statement or its data (USER), the system, or unknown."""

    USER = "USER"
    SYSTEM = "SYSTEM"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class RecordedFailure:
    """The reason and time of a failure."""

    timestamp_ms: int
    message: str
    type: FailureType


def classified(error: BaseException) -> FailureType:
    """The type of an error."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__
    for each in chain:
        if isinstance(each, BrokerError) and each.code in USER_CODES:
            return FailureType.USER
        if isinstance(each, USER_ERRORS):
            return FailureType.USER
    if any(isinstance(each, ClientError | StorageError | BrokerError | OSError) for each in chain):
        return FailureType.SYSTEM
    return FailureType.UNKNOWN


class QueryRuntime(Protocol):
    """A running query."""

    @property
    def application_id(self) -> str:
        """The consumer group, and the prefix of internal topics."""
        ...

    @property
    def state(self) -> QueryState:
        """The state."""
        ...

    @property
    def failures(self) -> tuple[RecordedFailure, ...]:
        """The latest failures, oldest first."""
        ...

    def start(self) -> None:
        """Start, or continue after `stop`."""
        ...

    def stop(self) -> None:
        """Commit and stop; state and offsets are kept."""
        ...

    def discard(self) -> None:
        """Stop, and delete state, offsets and internal topics."""
        ...

    def pause(self) -> None:
        """Stop processing until resumed."""
        ...

    def resume(self) -> None:
        """Continue processing."""
        ...

    def wait_running(self, timeout_ms: int) -> bool:
        """Wait until all its tasks run; False on a timeout or a failure."""
        ...

    # Any: the caller knows the kind of a store from its name.
    def stores(self, name: str) -> list[Any]:
        """Readers of a store with timestamps, one per local partition."""
        ...

    def elsewhere(self, name: str) -> list[str]:
        """The addresses of other servers with partitions of a store that are not local."""
        ...

    def describe(self) -> str:
        """The topology, as text."""
        ...

    def metrics(self) -> str:
        """All metrics in Prometheus' text format; empty while it is not running."""
        ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The backoff before a failed query is restarted."""

    initial_ms: int = 15_000
    max_ms: int = 900_000
    failures_kept: int = 10

    def wait_ms(self, attempt: int) -> int:
        """The wait before the n-th restart, starting at 0."""
        return int(min(self.max_ms, self.initial_ms * 2 ** min(attempt, 30)))


SUPERVISOR_RETRY = RetryPolicy(initial_ms=1_000, max_ms=60_000)


class Supervisor:
    """The thread that restarts failed queries after their backoff.

    Exceptions of an action do not end the thread: they are logged, and the action is retried.
    """

    def __init__(self, clock: Clock) -> None:
        """No thread runs before the first failure."""
        self._clock = clock
        self._changed = concurrency.Condition()
        self._due: list[tuple[int, Callable[[], None], int]] = []  # due, action, failures
        self._failing: dict[Callable[[], None], str] = {}
        self._thread: concurrency.Thread | None = None
        self._closed = False

    def after(self, wait_ms: int, action: Callable[[], None]) -> None:
        """Call a function after a delay."""
        self._add(wait_ms, action, 0)

    @property
    def failure(self) -> str | None:
        """Why an action is being retried, or an empty string."""
        with self._changed:
            return next(iter(self._failing.values()), None)

    def _add(self, wait_ms: int, action: Callable[[], None], failures: int) -> None:
        with self._changed:
            if self._closed:
                return
            self._due.append((self._clock.monotonic_ms() + wait_ms, action, failures))
            self._changed.notify_all()
            if self._thread is None:
                self._thread = concurrency.Thread(
                    target=self._run, name="sql-supervisor", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Remove all actions, and stop."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not concurrency.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                now_ms = self._clock.monotonic_ms()
                ready = [each for each in self._due if each[0] <= now_ms]
                self._due = [each for each in self._due if each[0] > now_ms]
                if not ready:
                    first = min((due_ms for due_ms, _, _ in self._due), default=None)
                    self._clock.wait(self._changed, None if first is None else first - now_ms)
                    continue
            for _, action, failures in ready:
                self._act(action, failures)

    def _act(self, action: Callable[[], None], failures: int) -> None:
        try:
            action()
        except Exception as error:  # whatever it is, the other queries need this thread
            wait_ms = SUPERVISOR_RETRY.wait_ms(failures)
            logger.exception("could not supervise a query; retrying in %d ms", wait_ms)
            with self._changed:
                self._failing[action] = f"{type(error).__name__}: {error}"
            self._add(wait_ms, action, failures + 1)
        else:
            with self._changed:
                self._failing.pop(action, None)


class Restarts:
    """The failures of a query, and when it is started again; its owner's lock guards it."""

    def __init__(
        self, application_id: str, clock: Clock, supervisor: Supervisor, policy: RetryPolicy
    ) -> None:
        self._application_id = application_id
        self._clock = clock
        self._supervisor = supervisor
        self._policy = policy
        self._failures: deque[RecordedFailure] = deque(maxlen=policy.failures_kept)
        self.attempts = 0  # since it last ran

    @property
    def failures(self) -> tuple[RecordedFailure, ...]:
        """The latest failures, oldest first."""
        return tuple(self._failures)

    def failed(
        self,
        message: str,
        kind: FailureType,
        start: Callable[[], None],
        trace: BaseException | None = None,
    ) -> None:
        """Record and log a failure, and call `start` after a time."""
        self._failures.append(RecordedFailure(self._clock.now_ms(), message, kind))
        wait_ms = self._policy.wait_ms(self.attempts)
        self.attempts += 1
        logger.error(
            "query %s failed (%s), restarting in %d ms: %s",
            self._application_id,
            kind.value,
            wait_ms,
            message,
            exc_info=trace,
        )
        self._supervisor.after(wait_ms, start)


class AppRuntime:
    """A query as a separate StreamsApp; see QueryRuntime. Any thread may call it."""

    def __init__(  # noqa: PLR0913 - what a query must be given
        self,
        application_id: str,
        build: Callable[[], Topology],
        *,
        target: Target | SharedRuntime,
        machine: Machine,
        settings: Mapping[str, object],
        supervisor: Supervisor,
        retry: RetryPolicy,
    ) -> None:
        """Call `start` to run it; `build` is called at each start."""
        self._application_id = application_id
        self._build = build
        self._target = target
        self._machine = machine
        # Any: each setting has its own type, which StreamsConfig validates.
        self._settings: dict[str, Any] = dict(settings)
        self._supervisor = supervisor
        self._restarts = Restarts(application_id, machine.clock, supervisor, retry)
        self._lock = concurrency.RLock()
        self._app: StreamsApp | None = None
        self._failed = False
        self._paused = False
        self._wanted = False

    @property
    def application_id(self) -> str:
        """The group, and the prefix of internal topics."""
        return self._application_id

    @property
    def state(self) -> QueryState:
        """The state."""
        if self._failed:
            return QueryState.ERROR
        if self._paused:
            return QueryState.PAUSED
        return QueryState.CREATED if self._app is None else QueryState.RUNNING

    @property
    def failures(self) -> tuple[RecordedFailure, ...]:
        """The latest failures."""
        return self._restarts.failures

    def start(self) -> None:
        """Start; a failure is recorded, not raised, and retried."""
        with self._lock:
            self._wanted = True
            if self._app is not None:
                return
            self._failed = False
            try:
                app = StreamsApp(
                    self._build(),
                    application_id=self._application_id,
                    broker=self._target,
                    machine=self._machine,
                    **self._settings,
                )
            except Exception as error:  # including errors of users' functions
                self._fail(error)
                return
            self._app = app
            app.on_state_change(lambda new, old: self._changed(app, new))
            if self._paused:
                app.pause()
            try:
                app.start()
            except Exception as error:
                if self._app is app:  # otherwise it was already reported
                    self._app = None
                    self._fail(error)

    def _changed(self, app: StreamsApp, state: AppState) -> None:
        """Called by the app, in any of its threads."""
        if state is AppState.RUNNING:
            self._restarts.attempts = 0
        if state is not AppState.ERROR:
            return
        with self._lock:
            if self._app is not app or not self._wanted:
                return
            self._app = None
            self._fail(app.error or StreamsError("the query has ended"))

    def _fail(self, error: BaseException) -> None:
        self._failed = True
        trace = None if isinstance(error, MillstreamError) else error
        self._restarts.failed(str(error), classified(error), self._try_again, trace)

    def _try_again(self) -> None:
        with self._lock:
            if self._wanted and self._app is None:
                self.start()

    def stop(self) -> None:
        """Commit and stop."""
        self._close(commit=True)

    def _close(self, *, commit: bool) -> None:
        with self._lock:
            self._wanted = False
            self._failed = False
            app, self._app = self._app, None
        if app is not None:
            app.close(CLOSE_TIMEOUT_MS, commit=commit)

    def discard(self) -> None:
        """Stop, and delete the data of the query, whether it is running, failed or never started.

        Nothing is committed, because another server may have deleted the query's topics.
        """
        try:
            self._close(commit=False)
        except Exception:  # its data is deleted anyway
            logger.exception("query %s did not stop cleanly", self._application_id)
        folder = self._settings.get("state_dir")
        if folder is not None:
            discard_state(self._machine.files, str(folder), self._application_id)
        target = self._target
        clients = target.clients if isinstance(target, SharedRuntime) else target
        discard_in_time(self._supervisor, clients, [self._application_id])

    def pause(self) -> None:
        """Stop processing until resumed."""
        with self._lock:
            self._paused = True
            if self._app is not None:
                self._app.pause()

    def resume(self) -> None:
        """Continue processing."""
        with self._lock:
            self._paused = False
            if self._app is not None:
                self._app.resume()

    def wait_running(self, timeout_ms: int) -> bool:
        """Wait until all tasks run."""
        app = self._app
        return app is not None and app.wait_for(AppState.RUNNING, timeout_ms=timeout_ms)

    # Any: the caller knows the kind of a store from its name.
    def stores(self, name: str) -> list[Any]:
        """Readers of a store, one per partition."""
        app = self._app
        if app is None:
            raise StoreNotReady(
                f'store "{name}" cannot be read: the query is {self.state.value}',
                hint="DESCRIBE EXTENDED shows why it failed",
            )
        partitions = _partitions_here(app, name)
        if not partitions:
            return [app.store(name, timestamped=True)]
        return [app.store(name, partition=each, timestamped=True) for each in partitions]

    def elsewhere(self, name: str) -> list[str]:
        """Other servers with the partitions that are not local."""
        app = self._app
        if app is None:
            return []
        here = set(_partitions_here(app, name))
        return [
            each.host for each in app.metadata(name) if each.active.get(name, frozenset()) - here
        ]

    def describe(self) -> str:
        """The topology, as text."""
        app = self._app
        if app is not None:
            return app.topology.describe()
        try:
            return self._build().describe()
        except MillstreamError:
            return ""  # it cannot run, and reports why

    def metrics(self) -> str:
        """All metrics; empty while it is not running."""
        app = self._app
        return "" if app is None else app.metrics_text()


def _partitions_here(app: StreamsApp, store: str) -> list[int]:
    """The local partitions of a store."""
    return sorted(
        {
            owned.task_id.partition
            for runner in app.runners
            if runner.tasks is not None
            for owned in runner.tasks.snapshot
            if store in owned.state.names and owned.phase is Phase.RUNNING
        }
    )


def begin_at_end(target: Target, application_id: str, topics: Iterable[str]) -> None:
    """Set the start of partitions without a commit to their current end offsets.

    Otherwise the application would use the end offsets of its first request, and miss the records
    written in between.
    """
    with admin(target) as administration:
        described = administration.describe_topics(topics).values
        places = [
            TopicPartition(name, number)
            for name, info in described.items()
            for number in info.partitions
        ]
        committed = administration.list_group_offsets(application_id, places).values
        missing = [each for each in places if each not in committed]
        if missing:
            administration.reset_group_offsets(application_id, dict.fromkeys(missing, LATEST)).all()


def remove_folder(files: FileSystem, folder: Path) -> None:
    """Delete a folder and its content, if it exists; remaining files are logged."""
    files.remove_folder(str(folder))
    try:
        left = files.list_folder(str(folder))
    except OSError:
        return  # it is deleted
    logger.warning("could not delete %s: it still has %d files or folders", folder, len(left))


def discard_state(files: FileSystem, state_directory: str, application_id: str) -> None:
    """Delete the local stores of an application that does not run."""
    remove_folder(files, Path(state_directory) / application_id)


def discard_in_time(
    supervisor: Supervisor,
    target: Target,
    application_ids: Collection[str],
    tries: int = DISCARD_TRIES,
) -> None:
    """Delete the offsets and internal topics of applications when no server runs them any more.

    The last server of a service that stops a query deletes them. A server that was killed is a
    member of the group until its session times out, so this one retries.
    """
    running = discard_applications(target, application_ids)
    if running and tries:
        supervisor.after(
            DISCARD_RETRY_MS, lambda: discard_in_time(supervisor, target, running, tries - 1)
        )
    elif running:
        logger.warning(
            "could not delete internal topics and groups of %s: the groups have members. They are "
            "deleted when a server of this service starts",
            ", ".join(running),
        )


def discard_applications(target: Target, application_ids: Collection[str]) -> list[str]:
    """Delete the offsets and internal topics of applications; returns those that still run.

    Nothing of an application whose group has members is deleted.
    """
    if not application_ids:
        return []
    try:
        with admin(target) as administration:
            running = _delete_groups(administration, application_ids)
            _delete_topics(administration, set(application_ids).difference(running))
    except MillstreamError as error:
        # Remaining topics do no harm; the application has ended.
        names = ", ".join(application_ids)
        logger.warning("could not delete internal topics or groups of %s: %s", names, error)
        return []
    return running


def _delete_groups(administration: Admin, application_ids: Collection[str]) -> list[str]:
    """Delete groups; returns the applications whose groups have members."""
    # Sinks on Spark have separate groups for their marks.
    prefixes = tuple(f"{each}-" for each in application_ids)
    known = sorted({each.group_id for each in administration.list_groups()})
    groups = [each for each in known if each in application_ids or each.startswith(prefixes)]
    errors = administration.delete_groups(groups).errors if groups else {}
    running = [name for name, error in errors.items() if _has_members(error)]
    _report("group", {name: error for name, error in errors.items() if name not in running})
    return [each for each in application_ids if each in running]


def _has_members(error: MillstreamError) -> bool:
    return isinstance(error, BrokerError) and error.code is ErrorCode.NON_EMPTY_GROUP


def _delete_topics(administration: Admin, application_ids: Collection[str]) -> None:
    prefixes = tuple(f"{each}-" for each in application_ids)
    internal = [each for each in administration.list_topics() if each.startswith(prefixes)]
    if internal:
        _report("topic", administration.delete_topics(internal).errors)


def _report(kind: str, errors: Mapping[str, MillstreamError]) -> None:
    for name, error in errors.items():
        logger.warning("could not delete %s %s: %s", kind, name, error)


def shown_state(state: QueryState) -> str:
    """A state as in lists: a new query counts as running."""
    return QueryState.RUNNING.value if state is QueryState.CREATED else state.value
