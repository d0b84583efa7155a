"""The messages between the two sides of a foreign-key join, as bytes.

    subscription   version and flag (1) | instruction (1) | hash (16, unless flagged) |
                   partition of the left record (4) | left key
    response       version and flags (1) | hash (16, unless flagged) |
                   partition of the left record (4) | right value (unless flagged)
    subscription store, key
                   length of the foreign key (4) | foreign key | left key

Numbers are big-endian. The low 6 bits of the first byte are the version; the flag 0x80 means that
there is no hash (the left record was deleted), 0x40 that there is no right value. The hash of a
left value is BLAKE2b with a digest of 16 bytes over its serialised bytes: a response is used only
if the left table still has the value that subscribed.
"""

from enum import IntEnum
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

from streams.errors import StreamsError

VERSION = 1
HASH_BYTES = 16
_NO_HASH = 0x80
_NO_VALUE = 0x40
_VERSION_BITS = 0x3F
_NUMBER = Struct(">i")


class Instruction(IntEnum):
    """What the right side must do with a subscription."""

    DELETE_NO_PROPAGATE = 0  # delete it, without a response
    DELETE_AND_PROPAGATE = 1  # delete it, and respond that there is no right value
    PROPAGATE_NULL_IF_MISSING = 2  # store it, and always respond
    PROPAGATE_ONLY_IF_RIGHT_EXISTS = 3  # store it, and respond if there is a right value


class Subscription(NamedTuple):
    """The subscription of a left record to a right key."""

    hash: bytes | None  # of the left value; None: the left record was deleted
    instruction: Instruction
    partition: int  # of the left record, for the response
    left_key: bytes


class Response(NamedTuple):
    """The right value for one left record."""

    hash: bytes | None
    partition: int
    value: bytes | None


def hash_of(data: bytes) -> bytes:
    """The hash of a serialised left value."""
    return blake2b(data, digest_size=HASH_BYTES).digest()


def encode_subscription(subscription: Subscription) -> bytes:
    """Encode a subscription."""
    value_hash = subscription.hash
    return b"".join(
        (
            bytes((VERSION | (_NO_HASH if value_hash is None else 0), subscription.instruction)),
            value_hash or b"",
            _NUMBER.pack(subscription.partition),
            subscription.left_key,
        )
    )


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription."""
    _check_version(data)
    at = 2
    value_hash = None
    if not data[0] & _NO_HASH:
        value_hash, at = data[at : at + HASH_BYTES], at + HASH_BYTES
    partition = _NUMBER.unpack_from(data, at)[0]
    return Subscription(value_hash, Instruction(data[1]), partition, data[at + _NUMBER.size :])


def encode_response(response: Response) -> bytes:
    """Encode a response."""
    flags = (_NO_HASH if response.hash is None else 0) | (
        _NO_VALUE if response.value is None else 0
    )
    head = bytes((VERSION | flags,)) + (response.hash or b"")
    return head + _NUMBER.pack(response.partition) + (response.value or b"")


def decode_response(data: bytes) -> Response:
    """Decode a response."""
    _check_version(data)
    at = 1
    value_hash = None
    if not data[0] & _NO_HASH:
        value_hash, at = data[at : at + HASH_BYTES], at + HASH_BYTES
    partition, at = _NUMBER.unpack_from(data, at)[0], at + _NUMBER.size
    return Response(value_hash, partition, None if data[0] & _NO_VALUE else data[at:])


def response_partition(data: bytes) -> int:
    """The partition to which a response must be sent."""
    at = 1 if data[0] & _NO_HASH else 1 + HASH_BYTES
    partition: int = _NUMBER.unpack_from(data, at)[0]
    return partition


def subscription_prefix(foreign_key: bytes) -> bytes:
    """The prefix of the store keys of all subscriptions to a foreign key."""
    return _NUMBER.pack(len(foreign_key)) + foreign_key


def _check_version(data: bytes) -> None:
    version = data[0] & _VERSION_BITS
    if version > VERSION:
        raise StreamsError(
            f"a message of a foreign-key join has version {version}",
            hint=f"this release supports versions up to {VERSION}; update all instances",
        )
