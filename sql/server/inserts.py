"""/inserts-stream: a target, then one row per line; every row is acknowledged."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from broker.errors import MillstreamError
from broker.rest import InvalidJson, Json, RestRequest, StreamedReply
from broker.rest.negotiation import media_name
from broker.rest.request import json_object
from sql.catalog import SourceInfo
from sql.engine.engine import Engine
from sql.engine.insert_records import NotCoercible
from sql.engine.session import SqlSession
from sql.errors import StatementFailed
from sql.schema import ROWTIME
from sql.server.answers import BAD_REQUEST, DELIMITED, JSON, Refused, error_json
from sql.server.rows import json_line
from sql.server.sql_request import TOO_LARGE, text_of
from sql.server.typed_values import typed_value

LINE_BYTES_MAX = 1024 * 1024


class Inserts:
    """Writes rows of streams of JSON lines."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def insert(self, request: RestRequest) -> StreamedReply:
        """POST /inserts-stream."""
        lines = _lines(request.http)
        first = await anext(lines, None)
        if first is None:
            raise Refused(BAD_REQUEST, "No target in request: the first line must name it")
        content = _object(first)
        name = text_of(content, "target")
        if not name:
            raise Refused(BAD_REQUEST, '"target" must be a string')
        target = await run_in_threadpool(self._target, name)
        is_array = media_name(request.header("accept")) == JSON
        return StreamedReply(
            self._acknowledged(target, lines, is_array=is_array),
            media_type=JSON if is_array else DELIMITED,
            reads=True,
        )

    def _target(self, name: str) -> SourceInfo:
        record_builder = self._engine.record_builder(self._engine.state, SqlSession())
        return record_builder.target(_column_name(name))

    async def _acknowledged(
        self, target: SourceInfo, lines: AsyncIterator[bytes], *, is_array: bool
    ) -> AsyncGenerator[bytes, None]:
        before, after, last = (b"[", b"", b"]\n") if is_array else (b"", b"\n", b"")
        number = -1
        try:
            async for line in lines:
                number += 1
                acknowledged = await run_in_threadpool(self._insert, target, line)
                yield before + json_line({**acknowledged, "seq": number}) + after
                before = b",\n" if is_array else b""
                if acknowledged["status"] == "error":
                    break
        except Refused as error:
            yield before + json_line({**_failed(error), "seq": number + 1}) + after
        except ClientDisconnect:
            return
        if is_array and before == b"[":
            yield b"["
        yield last

    def _insert(self, target: SourceInfo, line: bytes) -> dict[str, Json]:
        try:
            self._engine.insert_row(target.name, _values(target, _object(line)))
        except (Refused, MillstreamError) as error:
            return _failed(error)
        return {"status": "ok"}


def _failed(error: Exception) -> dict[str, Json]:
    told = error_json(error)
    return {"status": "error", "error_code": told["error_code"], "message": told["message"]}


def _values(target: SourceInfo, row: Mapping[str, object]) -> dict[str, object]:
    """The row's values by column; unknown names are ignored."""
    columns = {each.name: each for each in (*target.schema.key, *target.schema.value, ROWTIME)}
    result: dict[str, object] = {}
    for name, value in row.items():
        column = columns.get(_column_name(name))
        if column is None:
            continue
        try:
            result[column.name] = typed_value(value, column.type)
        except NotCoercible as error:
            raise StatementFailed(
                f"Can't coerce a field of type {type(value).__name__} into type {column.type}"
                f" for column `{column.name}`"
            ) from error
    return result


def _column_name(name: str) -> str:
    """Names in backticks are unchanged, others become upper case."""
    if len(name) > 1 and name[0] == name[-1] == "`":
        return name[1:-1].replace("``", "`")
    return name.upper()


def _object(line: bytes) -> dict[str, Json]:
    try:
        return json_object(line)
    except InvalidJson as error:
        why = error.reason or "expected an object"
        raise Refused(BAD_REQUEST, f"Invalid JSON in inserts stream: {why}") from error


async def _lines(request: Request) -> AsyncGenerator[bytes, None]:
    """The lines of a streamed body; empty ones are skipped."""
    rest = bytearray()
    async for chunk in request.stream():
        rest += chunk
        *whole, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in whole:
            if line.strip():
                yield line
        if len(rest) > LINE_BYTES_MAX:
            raise Refused(TOO_LARGE, f"a line is longer than {LINE_BYTES_MAX} bytes")
    if bytes(rest).strip():
        yield bytes(rest)
