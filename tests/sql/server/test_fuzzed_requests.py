"""Statements, bytes and frames made by chance: the server refuses or carries them out, and goes on.

Here a few and always the same; `make test-long` makes thousands of new ones.
"""

import base64
import random
import socket
import threading
from contextlib import suppress

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.parse.tokens import tokens_of
from tests.sql.server.conftest import SECONDS_MAX, Served
from tests.sql.server.test_malformed_requests import check
from tests.sql.server.test_sockets import connected, masked, target
from tests.support.sql_grammar import SAMPLES, Writer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sql-grammar")]

# Queries are explained: running one takes longer than finding out whether it could.
STATEMENTS = (
    "EXPLAIN SELECT id, item, amount * 2 + 1 AS more FROM orders WHERE amount > 1 EMIT CHANGES;",
    "EXPLAIN CREATE TABLE x AS SELECT id, COUNT(*) AS n, SUM(amount) AS s FROM orders "
    "WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 2 MINUTES) GROUP BY id HAVING COUNT(*) > 1;",
    "EXPLAIN CREATE STREAM x WITH (kafka_topic='x', value_format='JSON') AS SELECT o.id AS id, "
    "o.item, t.total FROM orders o LEFT JOIN totals t ON o.id = t.id;",
    "EXPLAIN CREATE STREAM x AS SELECT a.id AS id, b.item AS item FROM orders a JOIN orders b "
    "WITHIN 1 DAY ON a.id = b.id PARTITION BY a.id;",
    "EXPLAIN INSERT INTO kinds SELECT CAST(amount AS INT) AS k, 1.5 AS d, 1e0 AS f FROM orders;",
    "EXPLAIN SELECT CASE WHEN amount IN (1, 2) THEN 'x' ELSE NULL END AS c, "
    "TRANSFORM(ARRAY[1, 2], x => x + amount) AS l, EXPLODE(ARRAY[1, 2]) AS e FROM orders;",
    "EXPLAIN SELECT s->x, m['a'], a[1], STRUCT(p := d, q := b) AS n, t BETWEEN t AND t FROM kinds;",
    "CREATE STREAM {name} (k STRING KEY, v STRUCT<a INT, b ARRAY<DOUBLE>>, h BYTES HEADER('h')) "
    "WITH (kafka_topic='orders', value_format='JSON');",
    "CREATE OR REPLACE TABLE {name} (k INT PRIMARY KEY, v DECIMAL(4, 2), w MAP<STRING, DATE>) "
    "WITH (kafka_topic='orders', format='AVRO', timestamp='v', partitions=1);",
    "CREATE TYPE IF NOT EXISTS {name} AS STRUCT<street STRING, number INT>;",
    "INSERT INTO kinds (k, d, f, b, s, m, a) VALUES (1, 2.5, 1e3, TO_BYTES('00', 'hex'), "
    "STRUCT(x := '2020-01-01'), MAP('a' := '01:02:03'), ARRAY[1.5]);",
    "ALTER STREAM kinds ADD COLUMN {name} INT, ADD COLUMN z STRING;",
    "DESCRIBE totals EXTENDED;",
    "SHOW TOPICS EXTENDED; LIST PROPERTIES; SHOW FUNCTIONS; SHOW TYPES; SHOW VARIABLES;",
    "DESCRIBE FUNCTION substring; EXPLAIN CTAS_TOTALS_1;",
    "DEFINE v = 'orders'; DESCRIBE ${v}; UNDEFINE v; SET 'auto.offset.reset'='earliest';",
    "PAUSE CTAS_TOTALS_1; RESUME CTAS_TOTALS_1; DROP TYPE IF EXISTS {name};",
    "ALTER SYSTEM 'ksql.query.push.v2.enabled'='true'; SHOW QUERIES EXTENDED;",
)
PULLS = (
    "SELECT * FROM totals WHERE id = 'a' AND total > 1 LIMIT 3;",
    "SELECT id, total + 1 AS t FROM totals WHERE id IN ('a', 'b') OR total BETWEEN 1 AND 2;",
    "SELECT k, s->x, m['a'], a[1] FROM kinds WHERE d IS NOT NULL LIMIT 2;",
    "SELECT item, UCASE(item) AS u, ROWTIME FROM orders WHERE amount / 0 = 1;",
)
WORDS = (
    *(
        "id",
        "item",
        "amount",
        "total",
        "orders",
        "totals",
        "kinds",
        "k",
        "d",
        "s",
        "`x y`",
        "ROWTIME",
    ),
    *("1", "0", "-", "9223372036854775807", "9223372036854775808", "1e400", "2.50", "''", "'a'"),
    *("NULL", "TRUE", "AND", "OR", "NOT", "IS", "LIKE", "IN", "BETWEEN", "(", ")", "[", "]", ","),
    *("+", "*", "/", "%", "=", "<", "||", "->", "=>", ":=", ".", "AS", "FROM", "WHERE", "GROUP"),
    *("BY", "HAVING", "JOIN", "ON", "WITHIN", "WINDOW", "SESSION", "HOPPING", "SELECT", "LIMIT"),
    *("ARRAY", "MAP", "STRUCT", "CAST", "CASE", "WHEN", "THEN", "END", "SUM", "COUNT", "MAX"),
    *("EXPLODE", "TRANSFORM", "COLLECT_LIST", "LATEST_BY_OFFSET", "TIMESTAMP", "BYTES", "${v}"),
)


def changed(text: str, chance: random.Random) -> str:
    """A statement with some words left out, doubled, moved or replaced."""
    words = tokens_of(text.replace("{name}", f"n{chance.randrange(10**6)}")).raw[:-1]
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(words) + 1)
        match chance.randrange(5):
            case 0:
                words[place : place + 1] = []
            case 1:
                words.insert(place, chance.choice(WORDS))
            case 2:
                words[place : place + 1] = [chance.choice(WORDS)]
            case 3:
                words[place : place + 1] = words[place : place + 1] * 2
            case _:
                other = chance.randrange(len(words) + 1)
                words[place:place] = words[other : other + chance.randint(1, 6)]
    return " ".join(words)


def post(served: Served, path: str, text: str) -> httpx.Response:
    return served.client.post(path, json={"ksql": text})


@given(st.sampled_from(STATEMENTS), st.randoms(use_true_random=False))
def test_statements_with_mistakes_are_refused(
    served: Served, text: str, chance: random.Random
) -> None:
    sent = changed(text, chance)
    if "EMIT" in text or sent.startswith("SELECT"):
        sent = sent if sent.startswith("EXPLAIN") else f"EXPLAIN {sent}"
    check(post(served, "/ksql", sent))


@given(st.sampled_from(PULLS), st.randoms(use_true_random=False))
def test_queries_with_mistakes_are_refused(
    served: Served, text: str, chance: random.Random
) -> None:
    check(post(served, "/query", changed(text, chance)))


@given(st.integers(0, 2**32))
def test_statements_of_the_grammar_are_refused_or_carried_out(served: Served, seed: int) -> None:
    samples = {**SAMPLES, "NAME": ("orders", "totals", "id", "item", "amount", "k", "d")}
    text = Writer(random.Random(seed), samples).text()
    if text.startswith(("ASSERT", "SELECT", "PRINT")):
        return  # they wait, or are queries
    check(post(served, "/ksql", f"EXPLAIN {text}" if " AS SELECT" in text else text))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 100_000 + "1" + ")" * 100_000 + " FROM orders;",
        "SELECT " + "NOT " * 100_000 + "TRUE FROM orders;",
        "SELECT " + "amount + " * 10_000 + "1 FROM orders;",
        "CREATE STREAM wide (" + ", ".join(f"c{n} INT" for n in range(700_000)) + ") WITH (a=1);",
        "CREATE STREAM wide (c " + "ARRAY<" * 5_000 + "INT" + ">" * 5_000 + ");",
        "".join(f"CREATE TYPE g{n} AS STRUCT<a g{n - 1}, b g{n - 1}>;" for n in range(1, 40)),
        "CREATE TYPE g0 AS INT;"
        + "".join(f"CREATE TYPE g{n} AS STRUCT<a g{n - 1}, b g{n - 1}>;" for n in range(1, 40)),
        "".join(f"DEFINE v{n} = '${{v{n - 1}}}${{v{n - 1}}}';" for n in range(1, 60)),
        "DEFINE v0 = 'xxxxxxxx';"
        + "".join(f"DEFINE v{n} = '${{v{n - 1}}}${{v{n - 1}}}';" for n in range(1, 60)),
        ";" * 5_000_000,
        "SHOW STREAMS;" * 50_000,
        "SELECT '" + "''" * 2_000_000,
        "/*" * 4_000_000,
        "INSERT INTO orders VALUES ('a', '" + "x" * 9_000_000 + "', 1);",
        "SELECT * FROM totals WHERE " + " OR ".join(["id = 'x'"] * 60_000) + ";",
        "SELECT * FROM totals WHERE " + " AND ".join(["id IN ('x', 'y')"] * 60) + ";",
        "SELECT LPAD('x', 2147483647, 'y') AS t FROM totals WHERE id = 'a';",
        "SELECT GENERATE_SERIES(0, 2147483647) AS t FROM totals WHERE id = 'a';",
    ],
    ids=lambda text: text[:30],
)
def test_absurd_statements_end_soon(served: Served, text: str) -> None:
    path = "/query" if text.startswith("SELECT") else "/ksql"
    response = post(served, path, text)
    check(response)
    assert len(response.content) < 1_000_000
    assert post(served, "/ksql", "SHOW STREAMS;").status_code == httpx.codes.OK


@pytest.mark.parametrize(
    "body",
    [
        b'{"ksql": ' + b"[" * 1_000_000,
        b'{"ksql": "SHOW STREAMS;", "streamsProperties": ' + b'{"a":' * 100_000,
        b'{"ksql": "SHOW STREAMS;", "streamsProperties": {'
        + b",".join(b'"p%d": 1' % number for number in range(100_000))
        + b"}}",
        b'{"ksql": "SHOW STREAMS;", "commandSequenceNumber": 1e400}',
        b'{"ksql": "\\ud800"}',
        b"\xff\xfe" + b"\x00" * 1_000,
        b"9" * 1_000_000,
        b'{"hostInfo": {"host": "' + b"h" * 1_000_000 + b'", "port": 1}, "timestamp": 1}',
    ],
    ids=lambda body: repr(body[:30]),
)
@pytest.mark.parametrize(
    "path", ["/ksql", "/query", "/query-stream", "/close-query", "/inserts-stream", "/heartbeat"]
)
def test_absurd_bodies_are_refused(served: Served, path: str, body: bytes) -> None:
    response = served.client.post(path, content=body)
    check(response)
    assert response.status_code >= 400


# --- below HTTP -------------------------------------------------------------------------------


@given(
    st.one_of(
        st.binary(max_size=200),
        st.builds(
            lambda method, path, head, body: (
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode(
                    errors="replace"
                )
                + body
            ),
            st.sampled_from(["GET", "POST", "PRI", "BREW", ""]),
            st.sampled_from(["/ksql", "/info", "/ws/query", "/" + "x" * 70_000, "*", "//", "/%ff"]),
            st.sampled_from(
                [
                    *("", "Content-Length: -1", "Content-Length: 99999999999", "X: \x00"),
                    *("Transfer-Encoding: chunked", "Upgrade: websocket\r\nConnection: Upgrade"),
                    *("Content-Length: 3\r\nContent-Length: 4", "Expect: 100-continue"),
                    *("Upgrade: h2c\r\nConnection: Upgrade", "y: " + "z" * 70_000),
                ]
            ),
            st.binary(max_size=50),
        ),
    )
)
def test_any_bytes_are_answered_or_hung_up_on(served: Served, data: bytes) -> None:
    host, _, port = served.server.address.rpartition(":")
    answered = b""
    with (
        socket.create_connection((host, int(port)), timeout=SECONDS_MAX) as connection,
        suppress(ConnectionError),  # it may have hung up before all was sent
    ):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while more := connection.recv(65_536):
            answered += more
    assert b" 500 " not in answered[:20]
    assert b"Traceback" not in answered
    assert served.client.get("/info").status_code == httpx.codes.OK


frames = st.builds(
    masked,
    st.integers(0, 15),
    st.binary(max_size=200),
    first=st.sampled_from([0x00, 0x80, 0xC0, 0xF0]),
)


@given(st.lists(st.one_of(frames, st.binary(max_size=30)), max_size=6))
def test_any_frames_are_dropped_or_end_the_socket(served: Served, sent: list[bytes]) -> None:
    with connected(served) as client:
        client.open(target("SELECT item FROM orders EMIT CHANGES;"))
        with suppress(OSError):
            for each in sent:
                client.send(each)
    assert served.client.get("/info").status_code == httpx.codes.OK


@given(st.one_of(st.binary(max_size=60), st.sampled_from([*STATEMENTS, *PULLS]).map(str.encode)))
def test_any_request_of_a_socket_is_refused_or_answered(served: Served, text: bytes) -> None:
    with connected(served) as client:
        asked = base64.b16encode(text).decode()
        quoted = "".join(f"%{asked[at : at + 2]}" for at in range(0, len(asked), 2))
        client.open(f"/ws/query?request={quoted}")
        found = client.json()
        assert isinstance(found, list) or found["error_code"] < 50_000, found


def test_no_query_and_no_thread_is_left_behind(served: Served) -> None:
    """Runs last: whatever the others did, their queries have ended."""
    for each in list(served.engine.transient_queries.push_queries.values()):
        each.close()
    names = [each.name for each in threading.enumerate()]
    assert len(names) < 200, names
