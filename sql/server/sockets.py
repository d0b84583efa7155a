"""/ws/query: a query over a WebSocket; the first message has the columns, the others a row each."""

import asyncio
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from broker.rest.request import json_object
from sql.engine.fields import column_fields
from sql.engine.messages import plain_json
from sql.engine.printed_topic import PrintedTopic
from sql.server.answers import BAD_REQUEST, SERVER_ERROR, Refused, error_json
from sql.server.query_service import QueryService
from sql.server.response_formats import RowObjects
from sql.server.rows import json_line
from sql.server.sql_request import SqlRequest, sql_request

PATH = "/ws/query"
PARAMETERS_MAX = 20
DONE, NOT_ACCEPTED, FAILED = 1000, 1003, 1011


class WebSockets:
    """Runs queries over WebSockets."""

    def __init__(self, queries: QueryService) -> None:
        self._queries = queries

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, until the query has ended or the client has disconnected."""
        await receive()  # the event of a new connection
        if scope["path"].rstrip("/") != PATH:
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        sending = asyncio.ensure_future(self._send(scope["query_string"], send))
        gone = asyncio.ensure_future(_until_disconnected(receive))
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, gone):
            task.cancel()
        await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, query_string: bytes, send: Send) -> None:
        text = ""
        try:
            asked = _request_of(query_string)
            text = asked.text
            texts = self._texts(asked)
            try:
                async for each in texts:
                    await send({"type": "websocket.send", "text": each.decode()})
            finally:
                await texts.aclose()
        except Exception as error:
            told = error_json(error, text)
            await send({"type": "websocket.send", "text": json_line(told).decode()})
            code = NOT_ACCEPTED if told["error_code"] < SERVER_ERROR else FAILED
            await send({"type": "websocket.close", "code": code, "reason": told["message"]})
        else:
            await send({"type": "websocket.close", "code": DONE, "reason": "done"})

    async def _texts(self, asked: SqlRequest) -> AsyncGenerator[bytes, None]:
        queries = self._queries
        begun = await queries.in_thread(lambda: queries.begin(asked, RowObjects))
        if isinstance(begun, PrintedTopic):
            async for lines in queries.printed(begun):
                yield lines.rstrip(b"\n")
            return
        reader, rows, form = begun
        try:
            columns = column_fields(reader.result.columns)
            yield json_line([plain_json(each) for each in columns])
            while rows is not None:
                for each in rows:
                    yield form.rows([each]).strip(b",\n")
                rows = await queries.in_thread(reader.take)
            queries.check_whole(reader.result)
        finally:
            await queries.in_thread(lambda: queries.drop(reader.result))


def _request_of(query_string: bytes) -> SqlRequest:
    """The parameter "request", which has the same content as the body of /query."""
    text = query_string.decode("ascii", errors="replace")
    try:
        found = parse_qs(text, max_num_fields=PARAMETERS_MAX)
    except ValueError as error:
        raise Refused(BAD_REQUEST, f"more than {PARAMETERS_MAX} parameters") from error
    request = found.get("request", [""])[0]
    return sql_request(json_object(request.encode(errors="replace")))


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass
