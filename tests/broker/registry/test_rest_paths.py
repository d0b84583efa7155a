"""Contexts in paths, and which media types are chosen."""

import pytest

from broker.errors import RegistryError
from broker.registry.rest.context_paths import context_prefix, within_context
from broker.registry.rest.registry_request import JSON_BODY
from broker.registry.rest.replies import MEDIA_TYPES
from broker.rest import HttpError
from broker.rest.negotiation import answer_type

V1 = "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/subjects/a", "/subjects/a"),
        ("/contexts", "/contexts"),
        ("/contexts/.c", "/"),
        ("/contexts/.c/subjects/a/versions/1", "/subjects/%3A.c%3Aa/versions/1"),
        ("/contexts/c/subjects/a%2Fb", "/subjects/%3A.c%3Aa%2Fb"),
        ("/contexts/./subjects/a", "/subjects/a"),
        ("/contexts/%3A.c%3A/subjects/a", "/subjects/%3A.c%3Aa"),
        ("/contexts/.c/subjects/:.d:a", "/subjects/%3A.d%3Aa"),
        ("/contexts/.c/subjects/:*:a", "/subjects/%3A%2A%3Aa"),
        (
            "/contexts/.c/compatibility/subjects/a/versions",
            "/compatibility/subjects/%3A.c%3Aa/versions",
        ),
        ("/contexts/.c/config", "/config/%3A.c%3A"),
        ("/contexts/./config", "/config"),
        ("/contexts/.c/mode/a", "/mode/%3A.c%3Aa"),
        ("/contexts/.c/schemas/types", "/schemas/types"),
        ("/contexts/.c/subjects/config/versions", "/subjects/%3A.c%3Aconfig/versions"),
    ],
)
def test_a_context_in_front_goes_into_the_subject(path: str, meant: str) -> None:
    assert within_context(path, {})[0] == meant


@pytest.mark.parametrize(
    ("path", "query", "meant"),
    [
        ("/contexts/.c/subjects", {}, {"subjectPrefix": [":.c:"]}),
        ("/contexts/.c/schemas", {"subjectPrefix": ["a"]}, {"subjectPrefix": [":.c:a"]}),
        ("/contexts/.c/schemas", {"subjectPrefix": [":*:"]}, {"subjectPrefix": [":*:"]}),
        (
            "/contexts/.c/schemas/ids/1",
            {"deleted": ["true"]},
            {"deleted": ["true"], "subject": [":.c:"]},
        ),
        ("/contexts/.c/schemas/ids/1/subjects", {"subject": ["a"]}, {"subject": [":.c:a"]}),
        ("/contexts/.c/subjects/a", {"deleted": ["true"]}, {"deleted": ["true"]}),
        ("/subjects", {"limit": ["1"]}, {"limit": ["1"]}),
    ],
)
def test_a_context_in_front_goes_into_the_query(
    path: str, query: dict[str, list[str]], meant: dict[str, list[str]]
) -> None:
    assert within_context(path, query)[1] == meant


def test_a_context_has_no_colons_inside() -> None:
    assert context_prefix("::") == ""
    with pytest.raises(RegistryError, match="Invalid context: a:b"):
        context_prefix("a:b")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", V1),
        ("*/*", V1),
        ("application/*;q=0.2", V1),
        ("application/json", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json"),
        ("application/json;q=0.5, */*;q=0.1", "application/json"),
        ("text/html, application/json;q=wrong", "application/json"),
        (f"application/json;q=0.5, {V1}", V1),
        (" , ,", V1),
    ],
)
def test_the_media_type_that_is_liked_best_is_given(accept: str, chosen: str) -> None:
    assert answer_type(accept, MEDIA_TYPES) == chosen


@pytest.mark.parametrize("accept", ["text/html", "application/octet-stream", "*/*;q=0"])
def test_a_media_type_that_there_is_not_is_refused(accept: str) -> None:
    with pytest.raises(HttpError, match="Not Acceptable") as refused:
        answer_type(accept, MEDIA_TYPES)
    assert refused.value.status == 406


def test_bodies_are_json_or_do_not_say() -> None:
    for content_type in ("", V1, "application/json; charset=utf-8", "application/octet-stream"):
        assert JSON_BODY.accepts(content_type)
    assert not JSON_BODY.accepts("text/plain")
