"""What holds for every API in every version."""

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.handlers import HANDLERS, refusal
from broker.handlers.table import REFUSALS
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.frame import decode_response, encode_response, version_range
from broker.protocol.messages import REQUESTS
from broker.protocol.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.handlers.embedded import EmbeddedClient

NOT_ANNOUNCED = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def test_every_api_has_a_handler() -> None:
    assert set(HANDLERS) == set(ApiKey)


@pytest.mark.parametrize("api_key", sorted(NOT_ANNOUNCED), ids=lambda key: key.name)
def test_authentication_is_refused_on_plain_text(client: EmbeddedClient, api_key: ApiKey) -> None:
    answer = client.start(REQUESTS[api_key]())
    assert getattr(answer, "error_code", 0) == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize("api_key", sorted(HANDLERS), ids=lambda key: key.name)
def test_an_empty_request_is_answered_in_every_version(
    client: EmbeddedClient, api_key: ApiKey
) -> None:
    versions = version_range(api_key)
    for version in range(versions.first, versions.last + 1):
        try:
            answer = client.broker.handle(api_key, version, REQUESTS[api_key](), client.connection)
        except BrokerError:
            continue  # the connection is closed, which is an answer too
        if answer is not None and not isinstance(answer, Pending):
            assert encode_response(api_key, version, 1, answer)


@pytest.mark.parametrize("api_key", sorted(HANDLERS), ids=lambda key: key.name)
def test_a_request_that_fails_as_a_whole_has_an_answer_of_its_kind(api_key: ApiKey) -> None:
    versions = version_range(api_key)
    for version in range(versions.first, versions.last + 1):
        answer = refusal(api_key, version, REQUESTS[api_key](), ErrorCode.UNKNOWN_SERVER_ERROR)
        if answer is None:
            continue  # the connection is closed
        (frame,) = encode_response(api_key, version, 1, answer)
        assert isinstance(frame, bytes | bytearray | memoryview)
        if api_key not in REFUSALS:  # those say it of each part
            # A version that cannot say it would look like a success with nothing in it.
            decoded = decode_response(type(answer), version, memoryview(frame)[4:])
            code = getattr(decoded, "error_code", None)
            assert code == ErrorCode.UNKNOWN_SERVER_ERROR, version


def test_produce_is_announced_from_version_0_for_old_librdkafka(client: EmbeddedClient) -> None:
    response = client.ask(ApiVersionsRequest("me", "1.0"), ApiVersionsResponse)
    announced = {
        entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys
    }
    assert announced[ApiKey.PRODUCE] == (0, 13)
    assert announced[ApiKey.FETCH] == (4, 18)
    assert set(announced) == set(HANDLERS) - NOT_ANNOUNCED
    assert client.connection.software_name == "me"


def test_an_unexpected_error_becomes_an_error_code(
    client: EmbeddedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(client.broker.state.fetch_sessions, "plan", fail)
    answer = client.start(REQUESTS[ApiKey.FETCH]())
    assert getattr(answer, "error_code", None) == ErrorCode.UNKNOWN_SERVER_ERROR
