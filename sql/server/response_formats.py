"""Response formats: the conversion of a query's rows to parts of a response.

RowObjects   /query: one JSON array of objects, {"header": ...}, {"row": ...}, {"finalMessage": ...}
Messages     /query-stream as Protobuf: the same array, its rows are messages in base64
Delimited    /query-stream: a line of metadata, then one JSON array per line
OneArray     /query-stream as application/json: the same in one JSON array

Only /query sends tombstones (deleted rows of a table): the other formats have no field for them,
and omit them as ksqlDB does.
"""

import base64
from collections.abc import Iterable
from typing import Protocol

from broker.errors import SchemaError
from sql.datatypes import Column
from sql.engine.results import QueryResult, ResultRow, schema_text
from sql.rows.formats import format_of
from sql.rows.row_format import RowOptions
from sql.server.answers import (
    DELIMITED,
    JSON,
    NOT_ACCEPTABLE,
    PROTOBUF,
    V1_JSON,
    Refused,
    error_json,
)
from sql.server.rows import json_line, json_rows

QUERY_TERMINATED = "Query Terminated"


class ResponseFormat(Protocol):
    """The format of a response."""

    @property
    def media_type(self) -> str:
        """The media type."""
        ...

    def start(self) -> bytes:
        """The part before the rows."""
        ...

    def rows(self, rows: Iterable[ResultRow]) -> bytes:
        """The part for some rows."""
        ...

    def end(self) -> bytes:
        """The part after the last row."""
        ...

    def failure(self, error: Exception) -> bytes:
        """The end of a query that failed."""
        ...


class RowObjects:
    """Objects in one array; see ResponseFormat.

    Objects of a push query are whole lines, for clients that read lines; then a final message with
    the reason for the end always follows the last row.
    """

    media_type = V1_JSON

    def __init__(self, result: QueryResult) -> None:
        self._result = result
        self._prepare = json_rows(result.columns)
        self._before, self._after = (b"", b",\n") if result.is_push else (b",\n", b"")

    def start(self) -> bytes:
        """The header."""
        result = self._result
        header = {"queryId": result.query_id, "schema": schema_text(result.columns)}
        return b"[" + json_line({"header": header}) + self._after

    def rows(self, rows: Iterable[ResultRow]) -> bytes:
        """An object per row."""
        return b"".join(self._part({"row": self._row(each)}) + self._after for each in rows)

    def _row(self, row: ResultRow) -> object:
        columns = self._prepare(row.values)
        return {"columns": columns, "tombstone": True} if row.tombstone else {"columns": columns}

    def _part(self, content: object) -> bytes:
        return self._before + json_line(content)

    def end(self) -> bytes:
        """The final message, if there is one."""
        message = self._result.final_message
        if message is None and self._result.is_push:
            message = QUERY_TERMINATED
        return (b"" if message is None else self._part({"finalMessage": message})) + b"]\n"

    def failure(self, error: Exception) -> bytes:
        """The error as the last object."""
        return self._part({"errorMessage": error_json(error)}) + b"]\n"


class Messages(RowObjects):
    """Rows as Protobuf, with their schema in the header; see ResponseFormat."""

    media_type = PROTOBUF

    def __init__(self, result: QueryResult) -> None:
        """Refused if a column has no Protobuf type."""
        super().__init__(result)
        columns = [Column(each.name, each.type) for each in result.columns]
        try:
            self._schema = format_of("PROTOBUF").schema_of(columns, RowOptions()).text
            self._serde = format_of("PROTOBUF_NOSR").serde(columns, RowOptions())
        except SchemaError as error:
            raise Refused(NOT_ACCEPTABLE, f"Not Acceptable: {error.message}") from error

    def start(self) -> bytes:
        """The header."""
        header = {"queryId": self._result.query_id, "protoSchema": self._schema}
        return b"[" + json_line({"header": header}) + self._after

    def rows(self, rows: Iterable[ResultRow]) -> bytes:
        """A message per row."""
        return super().rows(each for each in rows if not each.tombstone)

    def _row(self, row: ResultRow) -> object:
        written = self._serde.serialize("", row.values)
        return base64.b64encode(written or b"").decode()


class Delimited:
    """A line per row; see ResponseFormat."""

    media_type = DELIMITED

    def __init__(self, result: QueryResult) -> None:
        self._result = result
        self._prepare = json_rows(result.columns)

    def start(self) -> bytes:
        """The columns."""
        return self._metadata() + b"\n"

    def _metadata(self) -> bytes:
        columns = self._result.columns
        return json_line(
            {
                "queryId": self._result.query_id,
                "columnNames": [each.name for each in columns],
                "columnTypes": [str(each.type) for each in columns],
            }
        )

    def rows(self, rows: Iterable[ResultRow]) -> bytes:
        """An array per row."""
        return b"".join(self._line(each) + b"\n" for each in rows if not each.tombstone)

    def _line(self, row: ResultRow) -> bytes:
        return json_line(self._prepare(row.values))

    def end(self) -> bytes:
        """Empty: the end of the response is sufficient."""
        return b""

    def failure(self, error: Exception) -> bytes:
        """The error as the last line."""
        return json_line(error_json(error)) + b"\n"


class OneArray(Delimited):
    """One array for everything; see ResponseFormat."""

    media_type = JSON

    def start(self) -> bytes:
        """The columns."""
        return b"[" + self._metadata()

    def rows(self, rows: Iterable[ResultRow]) -> bytes:
        """An array per row."""
        return b"".join(b",\n" + self._line(each) for each in rows if not each.tombstone)

    def end(self) -> bytes:
        """The end of the array."""
        return b"]\n"

    def failure(self, error: Exception) -> bytes:
        """The error as the last object."""
        return b",\n" + json_line(error_json(error)) + b"]\n"
