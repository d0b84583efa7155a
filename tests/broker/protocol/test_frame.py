"""Frames: headers of requests and responses, and bytes that are none."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import MalformedMessage, UnsupportedVersion
from broker.model import FileSlice
from broker.protocol import frame
from broker.protocol.api_keys import ApiKey
from broker.protocol.message import Attachment
from broker.protocol.messages import REQUESTS, RESPONSES
from broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker.protocol.messages.metadata import ApiVersionsResponse
from broker.protocol.wire import SPECS

EVERY_VERSION = [
    (key, version)
    for key, cls in REQUESTS.items()
    for version in range(SPECS[cls].versions.first, SPECS[cls].versions.last + 1)
]


def joined(parts: list[Attachment]) -> bytes:
    return b"".join(
        part.read() if isinstance(part, FileSlice) else bytes(part)  # type: ignore[call-overload]
        for part in parts
    )


def test_every_request_frame_comes_back() -> None:
    for key, version in EVERY_VERSION:
        parts = frame.encode_request(
            REQUESTS[key](), version, correlation_id=77, client_id="tester"
        )
        data = joined(parts)
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        request = frame.decode_request(memoryview(data)[4:])
        assert (request.api_key, request.api_version) == (key, version)
        assert (request.correlation_id, request.client_id) == (77, "tester")
        assert request.body == REQUESTS[key]()


def test_every_response_frame_comes_back() -> None:
    for key, version in EVERY_VERSION:
        cls = RESPONSES[key]
        data = joined(frame.encode_response(key, version, 78, cls()))
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        assert int.from_bytes(data[4:8], "big") == 78
        assert frame.decode_response(cls, version, memoryview(data)[4:]) == cls()


def test_the_answer_to_api_versions_never_has_header_tags() -> None:
    data = joined(frame.encode_response(ApiKey.API_VERSIONS, 3, 1, ApiVersionsResponse()))
    assert data[8:10] == b"\0\0"


def test_records_stay_beside_the_buffer() -> None:
    first, second = memoryview(b"first"), memoryview(b"second")
    body = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="t",
                partitions=[
                    PartitionData(partition_index=0, records=first),
                    PartitionData(partition_index=1, records=second),
                ],
            )
        ]
    )
    parts = frame.encode_response(ApiKey.FETCH, 12, 5, body)
    assert first in parts
    assert second in parts
    data = joined(parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert frame.decode_response(FetchResponse, 12, memoryview(data)[4:]) == body


def test_unknown_apis_and_versions_are_unsupported() -> None:
    for head in (b"\x03\xe8\0\0\0\0\0\1\0\0", b"\0\0\0\x63\0\0\0\1\0\0", b"\0\0\xff\xff\0\0\0\1"):
        with pytest.raises(UnsupportedVersion):
            frame.decode_request(memoryview(head))


def test_a_frame_shorter_than_a_header_is_malformed() -> None:
    for size in range(8):
        with pytest.raises(MalformedMessage):
            frame.decode_request(memoryview(bytes(size)))


@given(pair=st.sampled_from(EVERY_VERSION), rest=st.binary(max_size=60), keep=st.integers(0, 60))
def test_any_bytes_after_the_api_are_malformed_or_a_request(
    pair: tuple[ApiKey, int], rest: bytes, keep: int
) -> None:
    key, version = pair
    parts = frame.encode_request(REQUESTS[key](), version, correlation_id=1, client_id="c")
    data = joined(parts)[4:]
    for damaged in (data[:8] + rest, data[:keep] + rest):
        with suppress(MalformedMessage, UnsupportedVersion):
            frame.decode_request(memoryview(damaged))
