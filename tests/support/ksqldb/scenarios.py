"""Runs scenarios of Python clients of ksqlDB against one server, in their own environment.

    python -m tests.support.ksqldb.scenarios URL SCENARIO...
    {"scenario": "ksqldb-rows", "facts": {...}}  or  {"scenario": ..., "error": "..."}

Each line has the results that the client received; the caller compares them with the expected
ones. The dependencies of this repository are not installed in that environment.
"""

import asyncio
import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

# The clients are installed only in that environment.
import ksqldb  # type: ignore[import-not-found]
import requests  # type: ignore[import-untyped,unused-ignore]
from ksql import KSQLAPI  # type: ignore[import-not-found]
from ksql.errors import KSQLError  # type: ignore[import-not-found]
from ksql.utils import get_all_streams  # type: ignore[import-not-found]
from ksqldb_client import KSqlDBClient  # type: ignore[import-not-found]
from ksqldb_client.exceptions import APIError  # type: ignore[import-not-found]

LIMIT_S = 60
EARLIEST = {"auto.offset.reset": "earliest"}
# Any: facts and answers are JSON of many shapes.
Facts = dict[str, Any]


def until(what: str, find: Callable[[], Any]) -> Any:
    """Poll until `find` returns a true value, and return it."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        if found := find():
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not arrive within {LIMIT_S} s")
        time.sleep(0.05)


def sales(prefix: str) -> str:
    """Statements for a stream, and a table of sums."""
    return (
        f"CREATE STREAM {prefix}_sales (item STRING KEY, amount INT) WITH "
        f"(kafka_topic='{prefix}-sales', value_format='JSON', partitions=1);"
        f"CREATE TABLE {prefix}_sums AS SELECT item, SUM(amount) AS total FROM {prefix}_sales "
        "GROUP BY item;"
    )


# --- ksqldb -----------------------------------------------------------------------------------


def ksqldb_rows(url: str) -> Facts:
    """Statements, inserts, pull and push queries with "ksqldb"."""
    client = ksqldb.KSQLdbClient(url)
    created = client.ksql(sales("py"), stream_properties=EARLIEST)
    rows = [{"ITEM": "a", "AMOUNT": 1}, {"ITEM": "b", "AMOUNT": 2}, {"ITEM": "a", "AMOUNT": 3}]
    inserted = client.inserts_stream("py_sales", rows)

    async def watch() -> tuple[list[Any], bool]:
        seen = []
        closed = False
        text = "SELECT * FROM py_sales EMIT CHANGES;"
        async for part in client.query_async(text, EARLIEST, timeout=LIMIT_S):
            seen.append(part)
            if len(seen) == 4:
                query_id = seen[0]["queryId"]
                closed = await asyncio.to_thread(client.close_query, query_id)
        return seen, closed

    seen, closed = asyncio.run(watch())
    pull = "SELECT * FROM py_sums WHERE item = 'a';"

    def summed() -> Any:
        found = client.query_sync(pull, timeout=LIMIT_S)
        return found if found[1:] == [["a", 4]] else None

    return {
        "created": [each["commandStatus"]["status"] for each in created],
        "inserted": inserted,
        "columns": seen[0]["columnNames"],
        "seen": seen[1:],
        "closed": closed,
        "closed_again": client.close_query("transient_NOWHERE_1"),
        "pulled": until("the sums", summed)[1:],
        "properties": "ksql.service.id" in [each["name"] for each in client.get_properties()],
    }


def ksqldb_errors(url: str) -> Facts:
    """The errors of "ksqldb"."""
    client = ksqldb.KSQLdbClient(url)
    try:
        client.ksql("DROP STREAM py_nowhere;")
    except requests.HTTPError as error:
        answer: Any = error.response
        refused = [answer.status_code, answer.json()["error_code"]]
    (query,) = client.query_sync("SELECT * FROM py_nowhere;")
    return {"statement": refused, "query": query["error_code"]}


# --- ksql -------------------------------------------------------------------------------------


def ksql_statements(url: str) -> Facts:
    """The statements that "ksql" builds, and its lists."""
    client = KSQLAPI(url)
    client.ksql(
        "CREATE STREAM seed (id INT) WITH (kafka_topic='old', value_format='JSON', partitions=1);"
    )
    made = [
        client.create_stream("old_stream", ["word STRING", "n INT"], "old", "JSON"),
        client.create_stream_as(
            "old_short", ["word", "n"], "old_stream", conditions="n < 10", value_format="JSON"
        ),
    ]
    streams = get_all_streams(client, prefix="old_")
    described = client.ksql("DESCRIBE old_short;")[0]["sourceDescription"]
    query_id = described["writeQueries"][0]["id"]
    terminated = client.ksql(f"TERMINATE {query_id};")[0]["commandStatus"]["status"]
    dropped = client.ksql("DROP STREAM old_short DELETE TOPIC;")[0]["commandStatus"]["status"]
    return {
        "version": bool(client.get_ksql_version()),
        "made": made,
        "streams": sorted(streams),
        "terminated": terminated,
        "dropped": dropped,
        "properties": bool(client.get_properties()),
    }


def ksql_rows(url: str) -> Facts:
    """Inserts, pull and push queries with "ksql"."""
    client = KSQLAPI(url, timeout=LIMIT_S)
    client.ksql(sales("old"), stream_properties=EARLIEST)
    # It sends each string unchanged, as a separate request.
    request = '{"target": "old_sales"}\n{"ITEM": "a", "AMOUNT": 1}\n{"ITEM": "a", "AMOUNT": 3}\n'
    inserted = client.inserts_stream("old_sales", [request])
    text = "SELECT * FROM old_sales EMIT CHANGES LIMIT 2"
    limited = list(client.query(text, stream_properties=EARLIEST, return_objects=True))
    endless = client.query("SELECT * FROM old_sales EMIT CHANGES", stream_properties=EARLIEST)
    header = next(endless).strip().rstrip(",")
    query_id = json.loads(header + "]")[0]["header"]["queryId"]
    rows = [json.loads(next(endless).strip().rstrip(","))["row"]["columns"] for _ in range(2)]
    closed = client.close_query(query_id)
    pull = "SELECT * FROM old_sums WHERE item = 'a'"

    def summed() -> Any:
        found = list(client.query(pull, return_objects=True))
        return found if found == [{"ITEM": "a", "TOTAL": 4}] else None

    return {
        "inserted": inserted,
        "limited": limited,
        "rows": rows,
        "closed": closed,
        "closed_again": client.close_query("transient_NOWHERE_1"),
        "pulled": until("the sums", summed),
    }


def ksql_errors(url: str) -> Facts:
    """The errors of "ksql"."""
    client = KSQLAPI(url)
    found = []
    for attempt in (
        lambda: client.ksql("DROP STREAM old_nowhere;"),
        lambda: list(client.query("SELECT * FROM old_nowhere;")),
    ):
        try:
            attempt()
        except KSQLError as error:
            found.append([error.error_code, error.msg])
    return {"errors": found}


# --- ksqldb-client ----------------------------------------------------------------------------


def modelled(url: str) -> Facts:
    """All methods of "ksqldb-client"; it returns validated models."""
    client = KSqlDBClient(url, timeout_in_seconds=LIMIT_S)
    created = client.ksql(sales("model"), stream_properties=EARLIEST)
    last = created[-1]
    variables = {"item": "a"}
    for amount in (1, 3):
        client.ksql(
            f"INSERT INTO model_sales VALUES ('${{item}}', {amount});", session_variables=variables
        )
    streams = client.ksql("LIST STREAMS;", command_sequence_number=last.command_sequence_number)
    limited = client.query(
        "SELECT * FROM model_sales EMIT CHANGES LIMIT 2;", stream_properties=EARLIEST
    )

    def summed() -> Any:
        found = client.query("SELECT * FROM model_sums WHERE item = 'a';")
        rows = [each.row.columns for each in found if hasattr(each, "row")]
        return rows if rows == [("a", 4)] else None

    try:
        client.ksql("DROP STREAM model_nowhere;")
    except APIError as error:
        refused = str(error)
    return {
        "status": client.status(last.command_id).status,
        "query": client.status(last.command_id).query_id,
        "streams": [each.name for each in streams[0].streams if each.name == "MODEL_SALES"],
        "queries": [each.sinks[0] for each in client.ksql("SHOW QUERIES;")[0].queries],
        "seen": [each.row.columns for each in limited if hasattr(each, "row")],
        "final": limited[-1].final_message,
        "pulled": until("the sums", summed),
        "refused": "does not exist" in refused,
        "server": client.info().ksql_server_info.server_status,
    }


SCENARIOS: dict[str, Callable[[str], Facts]] = {
    "ksqldb-rows": ksqldb_rows,
    "ksqldb-errors": ksqldb_errors,
    "ksql-statements": ksql_statements,
    "ksql-rows": ksql_rows,
    "ksql-errors": ksql_errors,
    "ksqldb-client": modelled,
}


def main(url: str, *names: str) -> None:
    """Run scenarios one after the other."""
    warnings.simplefilter("ignore")  # the clients' own
    for name in names:
        try:
            line = {"scenario": name, "facts": SCENARIOS[name](url)}
        except Exception:
            line = {"scenario": name, "error": traceback.format_exc()}
        print(json.dumps(line), flush=True)  # noqa: T201 - what the caller reads


if __name__ == "__main__":
    main(*sys.argv[1:])
