"""What the two sides of a foreign-key join tell each other, in bytes.

    subscription   version and flag (1) | instruction (1) | hash (16, unless flagged) |
                   partition of the left record (4) | left key
    response       version and flags (1) | hash (16, unless flagged) |
                   partition of the left record (4) | right value (unless flagged)
    subscription store, key
                   length of the foreign key (4) | foreign key | left key

Numbers are big-endian. The low 6 bits of the first byte are the version; the flag 0x80 says that
there is no hash (the left record was deleted), 0x40 that there is no right value. The hash of a
left value is BLAKE2b with a digest of 16 bytes over its serialised bytes: an answer counts only
while the left table still has the value that asked.
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
    """What the right side is to do with a subscription."""

    DELETE_NO_PROPAGATE = 0  # forget it, and answer nothing
    DELETE_AND_PROPAGATE = 1  # forget it, and answer that there is no right value
    PROPAGATE_NULL_IF_MISSING = 2  # keep it, and answer in any case
    PROPAGATE_ONLY_IF_RIGHT_EXISTS = 3  # keep it, and answer if there is a right value


class Subscription(NamedTuple):
    """A left record's interest in a right key."""

    hash: bytes | None  # of the left value; None: the left record is gone
    instruction: Instruction
    partition: int  # of the left record: where the answer must go
    left_key: bytes


class Response(NamedTuple):
    """The right value for one left record."""

    hash: bytes | None
    partition: int
    value: bytes | None


def hash_of(data: bytes) -> bytes:
    """The hash of a serialised left value."""
    return blake2b(data, digest_size=HASH_BYTES).digest()


def packed_subscription(subscription: Subscription) -> bytes:
    """The bytes of a subscription."""
    found = subscription.hash
    return b"".join(
        (
            bytes((VERSION | (_NO_HASH if found is None else 0), subscription.instruction)),
            found or b"",
            _NUMBER.pack(subscription.partition),
            subscription.left_key,
        )
    )


def unpacked_subscription(data: bytes) -> Subscription:
    """The subscription of bytes."""
    _check_version(data)
    at = 2
    found = None
    if not data[0] & _NO_HASH:
        found, at = data[at : at + HASH_BYTES], at + HASH_BYTES
    partition = _NUMBER.unpack_from(data, at)[0]
    return Subscription(found, Instruction(data[1]), partition, data[at + _NUMBER.size :])


def packed_response(response: Response) -> bytes:
    """The bytes of an answer."""
    flags = (_NO_HASH if response.hash is None else 0) | (
        _NO_VALUE if response.value is None else 0
    )
    head = bytes((VERSION | flags,)) + (response.hash or b"")
    return head + _NUMBER.pack(response.partition) + (response.value or b"")


def unpacked_response(data: bytes) -> Response:
    """The answer of bytes."""
    _check_version(data)
    at = 1
    found = None
    if not data[0] & _NO_HASH:
        found, at = data[at : at + HASH_BYTES], at + HASH_BYTES
    partition, at = _NUMBER.unpack_from(data, at)[0], at + _NUMBER.size
    return Response(found, partition, None if data[0] & _NO_VALUE else data[at:])


def response_partition(data: bytes) -> int:
    """Where an answer must go."""
    at = 1 if data[0] & _NO_HASH else 1 + HASH_BYTES
    partition: int = _NUMBER.unpack_from(data, at)[0]
    return partition


def subscription_prefix(foreign_key: bytes) -> bytes:
    """What the keys of all subscriptions to a foreign key begin with."""
    return _NUMBER.pack(len(foreign_key)) + foreign_key


def _check_version(data: bytes) -> None:
    version = data[0] & _VERSION_BITS
    if version > VERSION:
        raise StreamsError(
            f"a message of a foreign-key join has version {version}",
            hint=f"this release supports versions up to {VERSION}; update all instances",
        )
