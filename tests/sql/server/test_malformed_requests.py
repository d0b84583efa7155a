"""Requests that nobody would send: none fails in the server, and it goes on."""

from urllib.parse import quote

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sql.server.conftest import Served

pytestmark = pytest.mark.slow

POSTS = (
    *("/ksql", "/query", "/query-stream", "/close-query", "/inserts-stream"),
    *("/heartbeat", "/lag"),
)
# /ksql/terminate ends the server of the other tests, and a sequence number is waited for.
names = st.sampled_from(
    [
        *("ksql", "sql", "streamsProperties", "properties", "sessionVariables", "queryId"),
        *("target", "k", "K", "`K`", "d", "s", "m", "a", "auto.offset.reset", "x", "host", "port"),
        *("hostInfo", "ksqlHost", "hostStoreLags", "stateStoreLags", "updateTimeMs", "timestamp"),
    ]
)
texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            *("SHOW STREAMS;", "SELECT * FROM totals;", "SELECT", ";", "kinds", "latest"),
            *("SELECT * FROM orders EMIT CHANGES LIMIT 0;", "DESCRIBE ${x};", "'", "--", "/*"),
        ]
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
bodies = st.one_of(
    st.binary(max_size=40),
    st.dictionaries(names, values, max_size=4).map(orjson.dumps),
    st.fixed_dictionaries({"ksql": texts}).map(orjson.dumps),
    st.lists(st.dictionaries(names, values, max_size=3), max_size=3).map(
        lambda rows: b"\n".join(map(orjson.dumps, [{"target": "kinds"}, *rows]))
    ),
)
accepts = st.sampled_from(
    ["", "*/*", "application/json", "application/vnd.ksqlapi.delimited.v1", "text/html", ";,;q=x"]
)


@given(path=st.sampled_from(POSTS), body=bodies, accept=accepts)
def test_whatever_is_sent_is_refused_or_carried_out(
    served: Served, path: str, body: bytes, accept: str
) -> None:
    response = served.client.post(path, content=body, headers={"accept": accept})
    check(response)


paths = st.lists(
    st.one_of(
        st.sampled_from(
            ["status", "is_valid_property", "v1", "metadata", "id", "info", "ksql", ""]
        ),
        st.text(alphabet=st.characters(codec="utf-8"), max_size=8),
    ),
    max_size=4,
)


@given(method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]), parts=paths)
def test_whatever_is_asked_for_is_found_or_not(
    served: Served, method: str, parts: list[str]
) -> None:
    path = "/".join(quote(part, safe="") for part in parts)
    check(served.client.request(method, f"{served.server.url}/{path}"))


def check(response: httpx.Response) -> None:
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        error = response.json()
        assert error["@type"] in ("generic_error", "statement_error")
        assert error["error_code"] // 100 == response.status_code
        assert "Traceback" not in response.text


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    body = b'{"ksql": "' + b" " * (11 * 1024 * 1024) + b'"}'
    response = served.client.post("/ksql", content=body)
    assert (response.status_code, response.json()["error_code"]) == (413, 41300)

    chunks = (b" " * (1024 * 1024) for _ in range(12))
    response = served.client.post("/query", content=chunks)
    assert (response.status_code, response.json()["error_code"]) == (413, 41300)


def test_a_line_that_is_too_long_is_refused(served: Served) -> None:
    body = b'{"target": "kinds"}\n' + b" " * (2 * 1024 * 1024)
    [ack] = served.client.post("/inserts-stream", content=body).text.splitlines()
    assert orjson.loads(ack)["error_code"] == 41300
