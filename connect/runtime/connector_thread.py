"""ConnectorThread: runs a connector (not its tasks) in its own thread.

    starting ──► running ◄──► paused | stopped       the connector itself is stopped in both
        │           │
        └─ raises ──┴──► failed                      until it is restarted

All code of the connector runs in this thread, one call after the other, except in threads that it
starts itself.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import TypeVar

from broker import concurrency, stack_traces
from connect.api import Connector, OffsetReader
from connect.config.connector import ConnectorConfig
from connect.config.hidden_values import hide_in_text
from connect.errors import ConnectError, RetriableError
from connect.state.task_state import StatusListener, TargetState

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The timeout of requests to the REST API.
ANSWER_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class Context:
    """The ConnectorContext of a connector."""

    offset_reader: OffsetReader
    reconfigure: Callable[[], None]
    fail: Callable[[BaseException], None]

    def request_task_reconfiguration(self) -> None:
        """Request a new call of `task_configs`."""
        self.reconfigure()

    def raise_error(self, error: Exception) -> None:
        """Fails the connector."""
        self.fail(error)


class ConnectorThread:
    """One connector and its thread."""

    def __init__(
        self,
        name: str,
        config: ConnectorConfig,
        make: Callable[[], Connector],
        listener: StatusListener,
        secrets: Sequence[str] = (),
    ) -> None:
        """`make` creates the connector, in the thread. Secrets are removed from traces."""
        self._secrets = secrets
        self.name = name
        self.config = config
        self.status = "unassigned"
        self._make = make
        self._listener = listener
        self._connector: Connector | None = None
        self._running = False  # whether `start` was called, and not `stop` since
        self._abandoned = False
        self._jobs: concurrency.SimpleQueue[Callable[[], None] | None] = concurrency.SimpleQueue()
        self._thread = concurrency.Thread(target=self._run, name=f"connect-{name}", daemon=True)

    # --- any thread ----------------------------------------------------------------------------

    def start(self, offset_reader: OffsetReader, reconfigure: Callable[[], None]) -> None:
        """Start the thread; the first target state starts the connector."""
        context = Context(offset_reader, reconfigure, self.fail)
        self._jobs.put(lambda: self._create(context))
        self._thread.start()

    def set_target(self, target: TargetState) -> None:
        """Start, pause or stop the connector, asynchronously."""
        self._jobs.put(lambda: self._follow(target))

    def ask(self, what: Callable[[Connector], T]) -> T:
        """Call the connector and wait for the result; ConnectError if it has failed."""
        answer: Future[T] = Future()
        self._jobs.put(lambda: self._answer(what, answer))
        try:
            return answer.result(ANSWER_TIMEOUT_S)
        except FutureTimeout:
            raise RetriableError(
                f'connector "{self.name}" has not responded in {ANSWER_TIMEOUT_S:.0f} s',
                hint="it may be waiting for the system it reads from or writes to",
            ) from None

    def fail(self, error: BaseException) -> None:
        """Mark the connector as failed."""
        trace = hide_in_text(stack_traces.format_error(error), self._secrets)
        logger.error('connector "%s" failed\n%s', self.name, trace)
        self._enter("failed", lambda: self._listener.on_failure(trace))

    def stop_soon(self) -> None:
        """Stop asynchronously."""
        self._jobs.put(self._end)
        self._jobs.put(None)

    def wait_ended(self, timeout_ms: int) -> bool:
        """Wait until it has stopped; False on a timeout."""
        self._thread.join(timeout_ms / 1000)
        return not self._thread.is_alive()

    def abandon(self) -> None:
        """Abandon the connector: its state is no longer reported."""
        self._abandoned = True
        logger.error('connector "%s" does not stop: its thread is abandoned', self.name)

    # --- the connector's thread ----------------------------------------------------------------

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception as error:
                self.fail(error)

    def _create(self, context: Context) -> None:
        connector = self._make()
        connector.context = context
        self._connector = connector

    def _follow(self, target: TargetState) -> None:
        if self._connector is None or self.status == "failed":
            return  # it stays failed until a restart, which creates a new thread
        if target is TargetState.STARTED:
            if self._running:
                return
            self._running = True
            self._connector.start(self.config.given)
            resumed = self.status != "unassigned"
            self._enter(
                "running", self._listener.on_running if resumed else self._listener.on_startup
            )
            return
        self._stop_connector()
        if target is TargetState.PAUSED:
            self._enter("paused", self._listener.on_paused)
        else:
            self._enter("stopped", self._listener.on_stopped)

    def _answer(self, what: Callable[[Connector], T], answer: Future[T]) -> None:
        if self._connector is None or self.status == "failed":
            answer.set_exception(ConnectError(f'connector "{self.name}" has failed'))
            return
        try:
            answer.set_result(what(self._connector))
        except Exception as error:
            answer.set_exception(error)

    def _stop_connector(self) -> None:
        if self._running and self._connector is not None:
            self._running = False
            self._connector.stop()

    def _end(self) -> None:
        try:
            self._stop_connector()
        except Exception:
            logger.exception('connector "%s": stop failed', self.name)
        if self.status != "failed":
            self._enter("unassigned", self._listener.on_shutdown)

    def _enter(self, status: str, notify: Callable[[], None]) -> None:
        self.status = status
        if self._abandoned:
            return
        try:
            notify()
        except Exception:
            logger.exception('connector "%s": its status could not be reported', self.name)
