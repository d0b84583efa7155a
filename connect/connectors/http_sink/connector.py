"""HttpSink: sends records to an HTTP service, in order, with retries.

A failed request is retried by a RetriableError, after which the worker puts the same records again;
requests of the same put that succeeded are not repeated. Delivery is at least once: after a crash,
the service can detect repeated requests by their idempotency key.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import httpx

from broker.model import TopicPartition
from connect.api import SinkConnector, SinkTask
from connect.config_def import ConfigDef, Settings
from connect.connectors.http_sink.definition import DEFINITION
from connect.connectors.http_sink.requests import (
    Request,
    RequestMaker,
    SkippedRecord,
    Undeliverable,
)
from connect.connectors.http_sink.status_codes import StatusCodes
from connect.errors import ConfigError, ConnectError, RetriableError
from connect.records import SinkRecord

BACKOFF_MS_MAX = 60_000
RETRY_AFTER_S_MAX = 300
_ANSWER_SHOWN = 300
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why a request failed, whether it may be retried, and the wait before that."""

    error: ConnectError
    is_retriable: bool
    wait_ms: int = 0


@dataclass(slots=True)
class Progress:
    """The progress of a put that the worker repeats after a RetriableError."""

    put: object = None
    delivered: int = 0  # records
    failures: int = 0  # of the next request


class HttpSinkConnector(SinkConnector):
    """Sends to one service, with as many tasks as allowed."""

    def __init__(self) -> None:
        self._config: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return DEFINITION

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """Finds invalid URLs and headers and missing credentials before the start."""
        if any(found.errors for found in DEFINITION.validate(config)):
            return {}  # the definition reports the errors
        try:
            self.start(config)
        except ConfigError as error:
            named = (name for name in DEFINITION.keys if name in error.message)
            return {max(named, key=len, default="http.api.url"): [str(error)]}
        return {}

    def start(self, config: Mapping[str, str]) -> None:
        """Checks the whole configuration."""
        RequestMaker(config)
        _auth(DEFINITION.parse(config))
        self._config = dict(config)

    def task_class(self) -> type[SinkTask]:
        return HttpSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """All tasks send to the same service."""
        return [self._config] * max_tasks

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Accepts any offsets: the worker stores them."""
        return True


class HttpSinkTask(SinkTask):
    """Sends records, one request after the other."""

    def start(self, config: Mapping[str, str]) -> None:
        """Creates the HTTP client; it connects on demand."""
        settings = DEFINITION.parse(config)
        self._maker = RequestMaker(config)
        self._retry_codes = StatusCodes(settings.text("retry.on.status.codes"))
        self._retries_max = settings.integer("max.retries")
        self._backoff_ms = settings.integer("retry.backoff.ms")
        self._on_error = settings.text("behavior.on.error").lower()
        self._on_null = settings.text("behavior.on.null.values").lower()
        request_s = settings.integer("http.request.timeout.ms") / 1_000
        connect_s = settings.integer("http.connect.timeout.ms") / 1_000
        self._client = httpx.Client(
            auth=_auth(settings),
            timeout=httpx.Timeout(request_s, connect=connect_s),
            # Loading the machine's certificates is slow, and plain HTTP needs none.
            verify=settings.text("http.api.url").startswith("https:"),
            trust_env=False,  # environment variables must not affect a worker
        )
        self._progress = Progress()

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        """Resets the progress: the assignment has changed."""
        self._progress = Progress()

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Sends the records; RetriableError if the rest may succeed later."""
        if not records:
            return
        put = (len(records), records[0].topic, records[0].partition, records[0].offset)
        if put != self._progress.put:
            self._progress = Progress(put)
        for step in self._maker.steps(records[self._progress.delivered :]):
            match step:
                case Request():
                    self._deliver(step)
                    self._progress.failures = 0
                    self._progress.delivered += len(step.records)
                case Undeliverable(record, error):
                    self._give_up([record], error)
                    self._progress.delivered += 1
                case SkippedRecord(record):
                    if self._on_null == "log":
                        _log.warning("skipped %s: it has no value", _place(record))
                    self._progress.delivered += 1
                case _:
                    assert_never(step)
        self._progress = Progress()

    def stop(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()

    def _deliver(self, request: Request) -> None:
        failure = self._send(request)
        if failure is None:
            return
        failures = self._progress.failures
        if not failure.is_retriable or failures >= self._retries_max:
            self._give_up(request.records, failure.error)
            return
        self._progress.failures += 1
        backoff_ms = min(self._backoff_ms << failures, BACKOFF_MS_MAX)
        self.context.timeout(max(failure.wait_ms, backoff_ms))
        raise RetriableError(failure.error.message, at=failure.error.at)

    def _send(self, request: Request) -> RequestFailure | None:
        at = f"{request.method} {request.url}, {_place(request.records[0])}"
        try:
            answer = self._client.request(
                request.method, request.url, headers=request.headers, content=request.body
            )
        except httpx.TransportError as error:
            why = str(error) or type(error).__name__
            return RequestFailure(
                ConnectError(f"the service cannot be reached: {why}", at=at), True
            )
        if answer.is_success:
            return None
        shown = f"{answer.status_code} {answer.reason_phrase}: {answer.text[:_ANSWER_SHOWN]}"
        return RequestFailure(
            ConnectError(f"the service responded with {shown}", at=at),
            answer.status_code in self._retry_codes,
            _retry_after_ms(answer),
        )

    def _give_up(self, records: Sequence[SinkRecord], error: ConnectError) -> None:
        """Apply behavior.on.error to records that cannot be delivered."""
        reporter = self.context.errant_record_reporter
        if self._on_error == "log":
            _log.error(
                "%d records from %s on are lost: %s", len(records), _place(records[0]), error
            )
        if reporter is not None and self._on_error != "ignore":
            for record in records:
                reporter.report(record, error)
        elif self._on_error == "fail":
            raise ConnectError(
                error.message,
                at=error.at or _place(records[0]),
                hint="to continue without them, set behavior.on.error or use a dead letter queue",
            ) from error


def _auth(settings: Settings) -> httpx.Auth | None:
    kind = settings.text("auth.type").upper()
    if kind == "BEARER" and not settings.password("bearer.token"):
        raise ConfigError("auth.type is BEARER, but there is no bearer.token")
    if kind != "BASIC":
        return None
    user = settings.text("connection.user")
    if not user:
        raise ConfigError("auth.type is BASIC, but there is no connection.user")
    return httpx.BasicAuth(user, settings.password("connection.password"))


def _retry_after_ms(answer: httpx.Response) -> int:
    text = answer.headers.get("Retry-After", "")
    return min(int(text), RETRY_AFTER_S_MAX) * 1_000 if text.isdecimal() else 0


def _place(record: SinkRecord) -> str:
    return f'topic "{record.topic}" partition {record.partition} offset {record.offset}'
