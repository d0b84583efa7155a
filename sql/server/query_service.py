"""/query, /query-stream and /close-query: rows as they arrive, until the client disconnects."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from broker import concurrency
from broker.rest import Json, Reply, RestRequest, StreamedReply
from broker.rest.negotiation import media_name
from sql.engine.engine import Engine
from sql.engine.printed_topic import PrintedTopic
from sql.engine.results import QueryResult, ResultRow
from sql.engine.trial import WrongEndpoint
from sql.errors import StatementFailed
from sql.server.answers import (
    BAD_REQUEST,
    DELIMITED,
    JSON,
    NOT_ACCEPTABLE,
    PROTOBUF,
    V1_JSON,
    Refused,
    ServerStopping,
    error_reply,
)
from sql.server.response_formats import Delimited, Messages, OneArray, ResponseFormat, RowObjects
from sql.server.sql_request import SqlRequest, sql_request, text_of

POLL_MS = 250  # how long a thread waits for rows before it checks whether they are still needed
ROWS_AT_ONCE = 500
READERS_MAX = 500  # threads that wait for rows of queries
ACCEPTED_MAX = 20


Returned = TypeVar("Returned")


class RowReader:
    """Reads rows of a result, many at a time; a failure is raised after the rows before it."""

    def __init__(self, result: QueryResult) -> None:
        self.result = result
        self._failure: Exception | None = None

    def take(self) -> list[ResultRow] | None:
        """Rows that are available, or arrive in time; None at the end."""
        if self._failure is not None:
            raise self._failure
        rows: list[ResultRow] = []
        try:
            row = self.result.poll(POLL_MS)
            while row is not None:
                rows.append(row)
                row = None if len(rows) == ROWS_AT_ONCE else self.result.poll(0)
        except Exception as error:
            if not rows:
                raise
            self._failure = error
        return rows if rows or not self.result.done else None


class QueryService:
    """Runs queries for clients; closing it ends all of them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: dict[int, QueryResult] = {}
        self._stopped: set[int] = set()  # queries that had not ended when the service was closed
        self._lock = concurrency.Lock()
        self._closed = False
        self._limiter: CapacityLimiter | None = None

    def close(self) -> None:
        """End all queries: their responses end with an error."""
        with self._lock:
            self._closed = True
            running = list(self._open.values())
            self._stopped.update(id(each) for each in running if not each.done)
        for each in running:
            each.close()

    @property
    def open_count(self) -> int:
        """The number of responses that are being streamed."""
        return len(self._open)

    async def query(self, request: RestRequest) -> StreamedReply | Reply:
        """POST /query."""
        return await self._answer(request, RowObjects)

    async def query_stream(self, request: RestRequest) -> StreamedReply | Reply:
        """POST /query-stream."""
        return await self._answer(request, form_for(request.header("accept")))

    def close_query(self, request: RestRequest) -> Json:
        """POST /close-query."""
        query_id = text_of(request.json_object(), "queryId")
        if not query_id:
            raise Refused(BAD_REQUEST, '"queryId" must be a string')
        found = self._engine.transient_queries.push_queries.get(query_id)
        if found is None:
            raise Refused(BAD_REQUEST, f"No query with id {query_id}")
        found.close()
        return {}

    async def _answer(
        self, request: RestRequest, form: Callable[[QueryResult], ResponseFormat]
    ) -> StreamedReply | Reply:
        asked = sql_request(request.json_object())
        try:
            begun = await self.in_thread(lambda: self.begin(asked, form))
        except Exception as error:
            return error_reply(error, asked.text)
        if isinstance(begun, PrintedTopic):
            parts = self.printed(begun)
            return StreamedReply(
                parts, media_type="text/plain; charset=utf-8", cut_off=ServerStopping
            )
        reader, first, written = begun
        return StreamedReply(self._rows(reader, first, written), media_type=written.media_type)

    def begin(
        self, asked: SqlRequest, form: Callable[[QueryResult], ResponseFormat]
    ) -> tuple[RowReader, list[ResultRow] | None, ResponseFormat] | PrintedTopic:
        """Start a query; the first rows of a pull query are read, so that it can be refused."""
        try:
            result = self._engine.query(
                asked.text, asked.properties, asked.variables, local=asked.local
            )
        except WrongEndpoint as error:
            return self._begin_print(asked, error)
        self._keep(result)
        reader = RowReader(result)
        try:
            written = form(result)
            return reader, [] if result.is_push else reader.take(), written
        except BaseException:
            self.drop(result)
            raise

    def _begin_print(self, asked: SqlRequest, error: WrongEndpoint) -> PrintedTopic:
        try:
            return self._engine.print_topic(asked.text, asked.variables)
        except WrongEndpoint:
            # It is not a query: the statement is wrong, not the endpoint.
            refused = StatementFailed(error.message, hint=error.hint)
            refused.statement = asked.text
            raise refused from None

    async def _rows(
        self, reader: RowReader, first: list[ResultRow] | None, form: ResponseFormat
    ) -> AsyncGenerator[bytes, None]:
        try:
            yield form.start() + form.rows(first or [])
            rows = None if first is None else await self.in_thread(reader.take)
            while rows is not None:
                if part := form.rows(rows):
                    yield part
                rows = await self.in_thread(reader.take)
            self.check_whole(reader.result)
            ended = form.end()
        except Exception as error:
            ended = form.failure(error)
        finally:
            await self.in_thread(lambda: self.drop(reader.result))
        yield ended

    async def printed(self, printed: PrintedTopic) -> AsyncGenerator[bytes, None]:
        """Lines of a topic, until the limit."""
        try:
            while not printed.done and not self._closed:
                lines = await self.in_thread(lambda: printed.poll(POLL_MS))
                if lines:
                    yield "".join(f"{each}\n" for each in lines).encode()
            if not printed.done:
                raise ServerStopping
        finally:
            await self.in_thread(printed.close)

    def check_whole(self, result: QueryResult) -> None:
        """ServerStopping if a query has no more rows because the service was closed."""
        if id(result) in self._stopped:
            raise ServerStopping

    def _keep(self, running: QueryResult) -> None:
        with self._lock:
            closed = self._closed
            self._open[id(running)] = running
            if closed:
                self._stopped.add(id(running))
        if closed:
            running.close()

    def drop(self, running: QueryResult) -> None:
        """End a query whose client has disconnected."""
        with self._lock:
            self._open.pop(id(running), None)
            self._stopped.discard(id(running))
        running.close()

    async def in_thread(self, call: Callable[[], Returned]) -> Returned:
        """Call in a thread; a cancelled caller waits for it, so that calls do not overlap."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(READERS_MAX)
        running = asyncio.ensure_future(to_thread.run_sync(call, limiter=self._limiter))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            with suppress(Exception):
                await running
            raise


def form_for(accept: str) -> Callable[[QueryResult], ResponseFormat]:
    """The response format that a client accepts."""
    wanted = [media_name(each) for each in accept.split(",")[:ACCEPTED_MAX] if each.strip()]
    for name in wanted or [DELIMITED]:
        if name in FORMS:
            return FORMS[name]
    raise Refused(NOT_ACCEPTABLE, "Not Acceptable")


FORMS: dict[str, Callable[[QueryResult], ResponseFormat]] = {
    DELIMITED: Delimited,
    "*/*": Delimited,
    "application/*": Delimited,
    JSON: OneArray,
    V1_JSON: RowObjects,
    PROTOBUF: Messages,
}
