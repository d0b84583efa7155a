"""Requests that nobody would send: none fails in the server, and the registry goes on."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import Broker
from broker.registry.registry import Registry
from broker.registry.rest import RegistryApplication, registry_application

SECONDS_MAX = 60.0
TOPICS = itertools.count()

SCHEMAS = (
    '"int"',
    '{"type": "record", "name": "R", "fields": []}',
    '{"type": "object"}',
    'syntax = "proto3"; message M { int64 id = 1; }',
    '{"type": "array", "items": ' * 40 + '"int"' + "}" * 40,
    "",
    "{",
)
words = st.sampled_from(
    [
        *("subjects", "schemas", "ids", "versions", "schema", "config", "mode", "contexts"),
        *("compatibility", "referencedby", "metadata", "guids", "types", "v1", "id", "version"),
        *("a", "b", ":.c:a", ":*:", ".c", ".", "..", "1", "2", "0", "-1", "latest", "", "a/b"),
    ]
)
texts = st.text(max_size=12)
segments = st.one_of(words, words, words, texts)
paths = st.lists(segments, max_size=7).map(
    lambda parts: "/" + "/".join(quote(part, safe="", errors="replace") for part in parts)
)
known_paths = st.sampled_from(
    [
        *("/subjects", "/subjects/a", "/subjects/a/versions", "/subjects/:.c:b/versions"),
        *("/subjects/a/versions/1", "/subjects/a/versions/latest/referencedby", "/config/a"),
        *("/compatibility/subjects/a/versions/latest", "/compatibility/subjects/a/versions"),
        *("/schemas", "/schemas/ids/1", "/schemas/ids/1/versions", "/mode", "/mode/a", "/config"),
        *("/contexts/.c/subjects/a/versions", "/contexts/.c/config", "/subjects/a/metadata"),
    ]
)
queries = st.dictionaries(
    st.sampled_from(
        [
            *("normalize", "deleted", "deletedOnly", "permanent", "verbose", "defaultToGlobal"),
            *("force", "recursive", "subjectPrefix", "latestOnly", "offset", "limit", "format"),
            *("fetchMaxId", "subject", "key", "value", "ruleType"),
        ]
    ),
    st.one_of(
        st.sampled_from(["true", "False", "1", "-1", "99999999999", "resolved", "serialized"]),
        texts,
    ),
    max_size=4,
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
schema_requests = st.fixed_dictionaries(
    {"schema": st.one_of(st.sampled_from(SCHEMAS), json_values)},
    optional={
        "schemaType": st.one_of(st.sampled_from(["AVRO", "JSON", "PROTOBUF"]), json_values),
        "references": st.one_of(
            st.lists(
                st.fixed_dictionaries(
                    {"name": texts, "subject": words, "version": st.integers(-2, 3)}
                ),
                max_size=2,
            ),
            json_values,
        ),
        "metadata": json_values,
        "ruleSet": json_values,
        "id": st.one_of(st.integers(-2, 9), json_values),
        "version": st.one_of(st.integers(-2, 9), json_values),
    },
)
setting_requests = st.fixed_dictionaries(
    {},
    optional={
        "compatibility": st.one_of(st.sampled_from(["NONE", "FULL", "full"]), json_values),
        "mode": st.one_of(st.sampled_from(["READWRITE", "IMPORT", "READONLY"]), json_values),
        "normalize": json_values,
        "alias": json_values,
        "defaultMetadata": json_values,
        "overrideRuleSet": json_values,
        "compatibilityGroup": json_values,
    },
)
bodies = st.one_of(
    st.one_of(schema_requests, setting_requests, json_values).map(
        lambda value: orjson.dumps(value, default=str)
    ),
    st.binary(max_size=40),
)


@dataclass(frozen=True)
class Sent:
    """One request of many."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes


requests = st.builds(
    Sent,
    st.sampled_from(["GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]),
    st.one_of(known_paths, known_paths, paths),
    queries,
    bodies,
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_directory=str(tmp_path_factory.mktemp("registry"))) as broker:
        yield broker


async def _send(application: RegistryApplication, sent: list[Sent]) -> list[httpx.Response]:
    transport = httpx.ASGITransport(application)
    async with (
        asyncio.timeout(SECONDS_MAX),
        httpx.AsyncClient(transport=transport, base_url="http://registry") as client,
    ):
        return [
            await client.request(
                each.method,
                f"{each.path}?{urlencode(each.query, errors='replace')}",
                content=each.body,
            )
            for each in sent
        ]


@pytest.mark.slow
@given(sent=st.lists(requests, min_size=1, max_size=12))
def test_no_request_makes_the_server_fail(broker: Broker, sent: list[Sent]) -> None:
    still_there = Sent("GET", "/subjects", {}, b"")
    with Registry(broker, topic=f"schemas-{next(TOPICS)}") as registry:
        *answers, last = asyncio.run(_send(registry_application(registry), [*sent, still_there]))
    for each, answer in zip(sent, answers, strict=True):
        assert answer.status_code < 500, (each, answer.text)
        if answer.status_code >= 400 and each.method != "HEAD":
            assert set(answer.json()) == {"error_code", "message"}, (each, answer.text)
    assert last.status_code == 200
    assert isinstance(last.json(), list)
