"""HttpSchemaRegistry: what goes over the wire, what comes of refusals, failures and outages."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.clock import SystemClock
from broker.errors import ConfigError, RegistryError
from broker.serde.registry import HttpSchemaRegistry, RegisteredSchema
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from tests.broker.client.test_sasl import Authority, server_context
from tests.broker.serde.registry.scripted_server import ScriptedServer, scripted_server

TEXT = Schema('"string"')
PROTO = Schema("message A {}", SchemaKind.PROTOBUF, (Reference("b.proto", "b", 3),))
PROTO_JSON = {
    "schema": "message A {}",
    "schemaType": "PROTOBUF",
    "references": [{"name": "b.proto", "subject": "b", "version": 3}],
}
NOT_FOUND = {"error_code": 40401, "message": "Subject 'a' not found."}
BUSY = {"error_code": 50302, "message": "later"}

Call = Callable[[HttpSchemaRegistry], object]


class NoWaiting(SystemClock):
    """Waits are noted, not waited."""

    def __init__(self) -> None:
        self.waits_ms: list[int | None] = []

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> bool:
        self.waits_ms.append(timeout_ms)
        return False


def opened(*urls: str, clock: NoWaiting | None = None, retries: int = 2) -> HttpSchemaRegistry:
    return HttpSchemaRegistry(urls, clock=clock or NoWaiting(), random=Random(1), retries=retries)


def registered(version: int = 2) -> dict[str, object]:
    return {"subject": "a", "version": version, "id": 7, **PROTO_JSON}


CALLS: list[tuple[str, Call, object, object, str, object]] = [
    (
        "register",
        lambda r: r.register("a/ b", TEXT),
        {"id": 4},
        4,
        "POST /subjects/a%2F%20b/versions",
        {"schema": '"string"'},
    ),
    (
        "register normalized",
        lambda r: r.register("a", PROTO, normalize=True),
        {"id": 4, "version": 1},
        4,
        "POST /subjects/a/versions?normalize=true",
        PROTO_JSON,
    ),
    ("schema", lambda r: r.schema(7), PROTO_JSON, PROTO, "GET /schemas/ids/7", None),
    (
        "schema of a subject",
        lambda r: r.schema(7, subject=":.c:a"),
        {"schema": '"string"'},
        TEXT,
        "GET /schemas/ids/7?subject=%3A.c%3Aa",
        None,
    ),
    (
        "lookup",
        lambda r: r.lookup("a", PROTO),
        registered(),
        RegisteredSchema("a", 2, 7, PROTO),
        "POST /subjects/a",
        PROTO_JSON,
    ),
    (
        "latest",
        lambda r: r.version("a"),
        registered(),
        RegisteredSchema("a", 2, 7, PROTO),
        "GET /subjects/a/versions/latest",
        None,
    ),
    (
        "version",
        lambda r: r.version("a", 2),
        registered(),
        RegisteredSchema("a", 2, 7, PROTO),
        "GET /subjects/a/versions/2?deleted=true",
        None,
    ),
    (
        "subjects",
        lambda r: r.subjects(prefix="x", deleted=True),
        ["a", "b"],
        ["a", "b"],
        "GET /subjects?deleted=true&subjectPrefix=x",
        None,
    ),
    ("versions", lambda r: r.versions("a"), [1, 2], [1, 2], "GET /subjects/a/versions", None),
    (
        "delete a subject",
        lambda r: r.delete_subject("a", permanent=True),
        [1, 2],
        [1, 2],
        "DELETE /subjects/a?permanent=true",
        None,
    ),
    (
        "delete a version",
        lambda r: r.delete_version("a", 2),
        2,
        2,
        "DELETE /subjects/a/versions/2",
        None,
    ),
    (
        "compatible",
        lambda r: r.compatible("a", TEXT),
        {"is_compatible": True},
        True,
        "POST /compatibility/subjects/a/versions/latest?verbose=true",
        {"schema": '"string"'},
    ),
    (
        "incompatibilities",
        lambda r: r.incompatibilities("a", TEXT, 3),
        {"is_compatible": False, "messages": ["no"]},
        ["no"],
        "POST /compatibility/subjects/a/versions/3?verbose=true",
        {"schema": '"string"'},
    ),
    ("level", lambda r: r.level(), {"compatibilityLevel": "FULL"}, "FULL", "GET /config", None),
    (
        "set a level",
        lambda r: r.set_level("NONE", "a"),
        {"compatibility": "NONE"},
        None,
        "PUT /config/a",
        {"compatibility": "NONE"},
    ),
    (
        "mode",
        lambda r: r.mode("a"),
        {"mode": "READONLY"},
        "READONLY",
        "GET /mode/a?defaultToGlobal=true",
        None,
    ),
    (
        "set a mode",
        lambda r: r.set_mode("IMPORT", force=True),
        {"mode": "IMPORT"},
        None,
        "PUT /mode?force=true",
        {"mode": "IMPORT"},
    ),
]


@pytest.mark.parametrize(
    ("call", "answer", "expected", "line", "body"),
    [case[1:] for case in CALLS],
    ids=[case[0] for case in CALLS],
)
def test_calls_are_the_requests_of_confluents_api(
    call: Call, answer: object, expected: object, line: str, body: object
) -> None:
    with scripted_server((200, answer)) as server, opened(server.url) as registry:
        assert call(registry) == expected
        assert [f"{each.method} {each.path}" for each in server.asked] == [line]
        assert server.asked[0].body == body
        assert server.asked[0].headers["content-type"] == "application/vnd.schemaregistry.v1+json"


def test_a_refusal_has_the_registrys_code_and_words_and_is_not_repeated() -> None:
    with scripted_server((404, NOT_FOUND)) as server, opened(server.url) as registry:
        with pytest.raises(RegistryError, match="Subject 'a' not found") as found:
            registry.version("a")
        assert (found.value.code, found.value.status, len(server.asked)) == (40401, 404, 1)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again_later_and_later(status: int) -> None:
    clock = NoWaiting()
    answers = ((status, BUSY), (status, BUSY), (200, {"id": 1}))
    with scripted_server(*answers) as server, opened(server.url, clock=clock) as registry:
        assert registry.register("a", TEXT) == 1
    first, second = clock.waits_ms
    assert first is not None
    assert second is not None
    assert 80 <= first <= 120 < 160 <= second <= 240


def test_after_the_last_attempt_the_servers_own_error_is_raised() -> None:
    with scripted_server((503, BUSY)) as server, opened(server.url) as registry:
        with pytest.raises(RegistryError, match="later"):
            registry.register("a", TEXT)
        assert len(server.asked) == 3


def free_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_registry_that_is_not_there_is_named_with_a_hint() -> None:
    url = free_url()
    with opened(url) as registry, pytest.raises(RegistryError, match=url) as found:
        registry.schema(1)
    assert "that it is running" in found.value.hint
    assert found.value.status == 503


def test_several_addresses_are_tried_in_turn_and_the_good_one_is_kept() -> None:
    clock = NoWaiting()
    with scripted_server((200, {"id": 1})) as server:
        with opened(free_url(), server.url, clock=clock) as registry:
            assert registry.register("a", TEXT) == 1
            assert registry.register("a", TEXT) == 1
        assert len(server.asked) == 2
        assert clock.waits_ms == []  # another address is tried at once


def test_a_text_may_hold_several_addresses() -> None:
    with scripted_server((200, {"id": 1})) as server:
        urls = f"{free_url()}, {server.url}/"
        with HttpSchemaRegistry(urls, clock=NoWaiting()) as registry:
            assert registry.register("a", TEXT) == 1
        assert server.asked[0].path == "/subjects/a/versions"


@pytest.mark.parametrize(
    ("auth", "expected"), [(("user", "secret"), "Basic dXNlcjpzZWNyZXQ="), ("abc", "Bearer abc")]
)
def test_credentials_and_headers_go_with_each_request(
    auth: tuple[str, str] | str, expected: str
) -> None:
    with (
        scripted_server((200, [])) as server,
        HttpSchemaRegistry(server.url, auth=auth, headers={"X-Team": "a"}) as registry,
    ):
        registry.subjects()
        assert server.asked[0].headers["authorization"] == expected
        assert server.asked[0].headers["x-team"] == "a"


def test_without_credentials_the_hint_says_how_to_give_them() -> None:
    with scripted_server((401, b"who are you?")) as server, opened(server.url) as registry:
        with pytest.raises(RegistryError, match="who are you") as found:
            registry.subjects()
        assert (found.value.code, "auth=" in found.value.hint) == (401, True)


@pytest.mark.parametrize("url", ["", "localhost:8081", "ftp://a", "http://", "http://a:b", ","])
def test_a_wrong_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="URL"):
        HttpSchemaRegistry(url)


def test_a_registry_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        HttpSchemaRegistry([])


def test_certificates_that_are_not_there_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        HttpSchemaRegistry("https://127.0.0.1:1", certificates="/nowhere.pem")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.mark.slow
def test_a_registry_behind_tls_must_be_vouched_for(authority: Authority) -> None:
    with scripted_server((200, ["a"]), tls=server_context(authority)) as server:
        trusting = HttpSchemaRegistry(server.url, certificates=str(authority.file))
        careless = HttpSchemaRegistry(server.url, verify=False)
        with trusting, careless:
            assert trusting.subjects() == careless.subjects() == ["a"]
        with opened(server.url) as registry, pytest.raises(RegistryError) as found:
            registry.subjects()
        assert "certificates=" in found.value.hint


def test_a_registry_that_wants_a_certificate_gets_ours(authority: Authority) -> None:
    tls = server_context(authority)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(authority.file)
    with (
        scripted_server((200, ["a"]), tls=tls) as server,
        HttpSchemaRegistry(
            server.url, certificates=str(authority.file), certificate=authority.issue("client")
        ) as registry,
    ):
        assert registry.subjects() == ["a"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "schema", "schemaType", "references", "error_code", "version"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def any_server() -> Iterator[ScriptedServer]:
    with scripted_server((200, {})) as server:
        yield server


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    status=st.sampled_from([200, 404, 422, 500]),
    answer=JSON | st.binary(max_size=30),
    call=st.sampled_from([case[1] for case in CALLS]),
)
def test_whatever_is_answered_only_registry_errors_come_of_it(
    any_server: ScriptedServer, status: int, answer: object, call: Call
) -> None:
    any_server.answers = [(status, answer)]
    with opened(any_server.url, retries=0) as registry, suppress(RegistryError):
        call(registry)
