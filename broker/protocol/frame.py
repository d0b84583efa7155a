"""Frames: an int32 size, a header, a message.

    request   size  api_key api_version correlation_id client_id [tags]  body
    response  size  correlation_id [tags]  body

The header is flexible (has a tagged section) exactly when the body is, with two old exceptions: the
client id is never compact, and the response to ApiVersions never has tags, since the client does
not know the broker's versions yet.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import TypeVar

from broker.errors import MalformedMessage, UnsupportedVersion
from broker.protocol import message as codec
from broker.protocol.api_keys import ApiKey
from broker.protocol.message import Attachment, Attachments
from broker.protocol.messages import REQUESTS, RESPONSES
from broker.protocol.messages.headers import RequestHeader
from broker.protocol.primitives import read_nullable_string, skip_tagged_fields
from broker.protocol.wire import SPECS, Versions

T = TypeVar("T")

SIZE = Struct(">i")
SIZE_AND_CORRELATION = Struct(">ii")
REQUEST_PREFIX = Struct(">hhi")
SIZE_BYTES = SIZE.size


@dataclass(slots=True)
class Request:
    """A decoded request: the API, its version, the message and the client."""

    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str
    body: object


def version_range(api_key: ApiKey) -> Versions:
    """The versions of an API that the codec supports."""
    return SPECS[REQUESTS[api_key]].versions


def peek_header(frame: memoryview) -> tuple[int, int, int]:
    """Api key, version and correlation id of a request frame, unchecked."""
    if len(frame) < REQUEST_PREFIX.size:
        raise MalformedMessage(f"request of {len(frame)} bytes is shorter than a header")
    key, version, correlation_id = REQUEST_PREFIX.unpack_from(frame)
    return key, version, correlation_id


def decode_request(frame: memoryview) -> Request:
    """Decode a request frame, without its size; unknown APIs and versions are refused."""
    key, version, correlation_id = peek_header(frame)
    api_key, cls, flexible = _INCOMING.get((key, version)) or _incoming(key, version)
    client_id, position = _client_id(frame)
    if flexible:
        position = _skip_tags(frame, position)
    body, position = codec.decode(cls, frame, version, position)
    return Request(api_key, version, correlation_id, client_id, body)


# What the first bytes of a request determine: the API, its class, whether the header has tags.
_INCOMING: dict[tuple[int, int], tuple[ApiKey, type[object], bool]] = {}


def _incoming(key: int, version: int) -> tuple[ApiKey, type[object], bool]:
    try:
        api_key = ApiKey(key)
    except ValueError:
        raise UnsupportedVersion(f"api key {key} is not known") from None
    cls = REQUESTS[api_key]
    if version not in SPECS[cls].versions:
        raise UnsupportedVersion(f"{api_key.name} version {version} is not known")
    found = (api_key, cls, codec.is_flexible(cls, version))
    _INCOMING[(key, version)] = found
    return found


def _client_id(frame: memoryview) -> tuple[str, int]:
    try:
        client_id, position = read_nullable_string(frame, REQUEST_PREFIX.size)
    except StructError as error:
        raise MalformedMessage("header ends too early") from error
    return client_id or "", position


def _skip_tags(frame: memoryview, position: int) -> int:
    try:
        return skip_tagged_fields(frame, position)
    except IndexError as error:
        raise MalformedMessage("header ends too early") from error


def encode_response(
    api_key: ApiKey, version: int, correlation_id: int, body: object
) -> list[Attachment]:
    """The parts of a response frame, including the size, in the order in which they are sent."""
    out = bytearray(SIZE_AND_CORRELATION.size)
    attachments: Attachments = []
    if api_key is not ApiKey.API_VERSIONS and codec.is_flexible(type(body), version):
        out.append(0)
    codec.encode(body, version, out, attachments)
    size = len(out) - SIZE_BYTES + sum(len(part) for _, part in attachments)
    SIZE_AND_CORRELATION.pack_into(out, 0, size, correlation_id)
    return _parts(out, attachments)


def encode_request(
    body: object, version: int, *, correlation_id: int, client_id: str
) -> list[Attachment]:
    """The parts of a request frame, including the size, in the order in which they are sent."""
    api_key = SPECS[type(body)].api_key
    assert api_key is not None, f"{type(body).__name__} is not a request"
    out = bytearray(SIZE_BYTES)
    attachments: Attachments = []
    header = RequestHeader(api_key, version, correlation_id, client_id)
    codec.encode(header, 1, out, attachments)
    if codec.is_flexible(type(body), version):
        out.append(0)
    codec.encode(body, version, out, attachments)
    size = len(out) - SIZE_BYTES + sum(len(part) for _, part in attachments)
    SIZE.pack_into(out, 0, size)
    return _parts(out, attachments)


def decode_response(cls: type[T], version: int, frame: memoryview) -> T:
    """Decode a response frame, without its size, of the given response class."""
    position = 4
    api_key = SPECS[cls].api_key
    if api_key is not ApiKey.API_VERSIONS and codec.is_flexible(cls, version):
        position = _skip_tags(frame, position)
    body, _ = codec.decode(cls, frame, version, position)
    return body


def response_class(request: object) -> type[object]:
    """The response class of a request."""
    api_key = SPECS[type(request)].api_key
    assert api_key is not None, f"{type(request).__name__} is not a request"
    return RESPONSES[api_key]


def _parts(out: bytearray, attachments: Attachments) -> list[Attachment]:
    if not attachments:
        return [out]
    parts: list[Attachment] = []
    view = memoryview(out)
    start = 0
    for position, attachment in attachments:
        if position > start:
            parts.append(view[start:position])
        parts.append(attachment)
        start = position
    if start < len(out):
        parts.append(view[start:])
    return parts
