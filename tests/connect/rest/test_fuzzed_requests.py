"""Random requests: none fails in the worker, and its connectors keep running."""

import tempfile
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connect.rest.conftest import Served

pytestmark = pytest.mark.slow

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "FileStreamSink"
NOWHERE = str(Path(tempfile.gettempdir(), "nowhere"))

strings = st.text(max_size=12)
segments = st.one_of(
    st.sampled_from(
        [
            *("connectors", "connector-plugins", "admin", "loggers", "config", "validate"),
            *("status", "tasks", "topics", "reset", "offsets", "restart", "pause", "stop"),
            *("stopped-source", "stopped-sink", "0", "-1", "99999999999", "", "a/b", ".", ".."),
            *("FileStreamSource", "Cast$Value", "tests.connect.scripted:Nope", "os:path", "a:b:c"),
        ]
    ),
    strings,
)
known_paths = st.sampled_from(
    [
        *("/connectors", "/connectors/stopped-source/config", "/connectors/stopped-sink/config"),
        *("/connectors/stopped-source/offsets", "/connectors/stopped-sink/offsets"),
        *("/connectors/stopped-source/restart", "/connectors/stopped-source/tasks/0/restart"),
        *("/connector-plugins/FileStreamSource/config/validate", "/admin/loggers/fuzzed.x"),
    ]
)
paths = st.one_of(
    known_paths,
    st.lists(segments, max_size=6).map(
        lambda parts: "/" + "/".join(quote(part, safe="", errors="replace") for part in parts)
    ),
)
queries = st.dictionaries(
    st.sampled_from(
        ["expand", "includeTasks", "onlyFailed", "connectorsOnly", "scope", "version", "forward"]
    ),
    st.one_of(st.sampled_from(["true", "info", "status", "cluster", "latest"]), strings),
    max_size=3,
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), strings),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(strings, inner, max_size=3)
    ),
    max_leaves=8,
)
configs = st.dictionaries(
    st.one_of(
        st.sampled_from(
            [
                *("name", "topic", "topics", "topics.regex", "tasks.max", "transforms"),
                *("transforms.a.type", "predicates", "key.converter", "errors.tolerance"),
                *("consumer.override.group.id", "transforms.a.predicate", "header.converter"),
            ]
        ),
        strings,
    ),
    st.one_of(
        st.sampled_from(["a", "a,b", "(", "-1", "org.apache.kafka.connect.transforms.Cast$Value"]),
        json_values,
    ),
    max_size=5,
)
classes = st.sampled_from([SOURCE, SINK, "Nope", "os:path", "Cast$Value", ":", ""])
bodies = st.one_of(
    json_values,
    configs,
    st.builds(lambda config, name: {**config, "connector.class": name}, configs, classes),
    st.fixed_dictionaries(
        # A name that no connector can have: nothing is made that would have to be deleted.
        {"name": st.one_of(st.just("a\nb"), json_values), "config": configs},
        optional={"initial_state": st.one_of(st.sampled_from(["STOPPED", "x"]), json_values)},
    ),
    st.fixed_dictionaries(
        {
            "offsets": st.one_of(
                json_values,
                st.lists(
                    st.fixed_dictionaries({"partition": json_values, "offset": json_values}),
                    max_size=2,
                ),
            )
        }
    ),
    st.fixed_dictionaries({"level": st.one_of(st.sampled_from(["INFO", "x"]), json_values)}),
)
contents = st.one_of(bodies.map(orjson.dumps), st.binary())
media_types = st.sampled_from(["application/json", "application/json; charset=x", "text/plain", ""])


@pytest.fixture(scope="module")
def fuzzed(served: Served) -> Served:
    for name, config in (
        ("stopped-source", {"connector.class": SOURCE, "topic": "t", "file": NOWHERE}),
        ("stopped-sink", {"connector.class": SINK, "topics": "t", "file": NOWHERE}),
    ):
        body = {"name": name, "config": config, "initial_state": "STOPPED"}
        served.client.post("/connectors", json=body).raise_for_status()
    return served


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"]),
    path=paths,
    query=queries,
    content=contents,
    media_type=media_types,
)
def test_no_request_is_an_error_of_the_worker(
    fuzzed: Served,
    method: str,
    path: str,
    query: dict[str, str],
    content: bytes,
    media_type: str,
) -> None:
    response = fuzzed.client.request(
        method,
        f"{fuzzed.server.url}{path}?{urlencode(query, errors='replace')}",
        content=content,
        headers={"Content-Type": media_type},
    )
    check_answer(response, method)


def check_answer(response: httpx.Response, method: str) -> None:
    assert response.status_code < 500, response.text
    if response.status_code >= 400 and method != "HEAD":
        assert response.json()["error_code"] == response.status_code
        assert isinstance(response.json()["message"], str)


def test_bodies_are_bounded(fuzzed: Served) -> None:
    large = b'{"a":"' + b"x" * 1_100_000 + b'"}'
    response = fuzzed.client.put(
        "/connectors/x/config", content=large, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 413
    nested = b"[" * 100_000 + b"]" * 100_000
    response = fuzzed.client.put(
        "/connectors/x/config", content=nested, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 400
    for text in (rb'{"a":"\ud800"}', b'{"a":NaN}', b'{"a":1e999}', b"\xff"):
        response = fuzzed.client.put(
            "/connectors/x/config", content=text, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 400, text


def test_a_configuration_that_no_topic_can_hold_is_refused(fuzzed: Served) -> None:
    config = {"connector.class": SOURCE, "topic": "t", "x": "y" * 950_000}
    response = fuzzed.client.put("/connectors/large/config", json=config)
    assert response.status_code == 400
    assert "too large" in response.json()["message"]
