"""Serde: converts a value to bytes and back; None is null in both directions."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from broker.errors import SerdeError

T = TypeVar("T")


class Serde(Protocol[T]):
    """Converts values of one type to the bytes of a record's key or value, and back."""

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        """The bytes of a value; SerdeError if it cannot be encoded."""
        ...

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        """The value of bytes; SerdeError if they cannot be decoded."""
        ...


@runtime_checkable
class BindableSerde(Serde[T], Protocol[T]):
    """A serde with a faster path for many records of one topic.

    Its functions do not accept None. Their exceptions are not meant for users: callers catch them,
    and call `serialize` or `deserialize` to get a better error.
    """

    def encoder(self, topic: str) -> Callable[[T], bytes | None]:
        """The equivalent of `serialize` for a topic."""
        ...

    def decoder(self, topic: str) -> Callable[[bytes], T | None]:
        """The equivalent of `deserialize` for a topic."""
        ...


@runtime_checkable
class ChunkSerde(BindableSerde[T], Protocol[T]):
    """A serde that decodes many values faster than one by one."""

    def chunk_decoder(self, topic: str) -> Callable[[Sequence[bytes]], list[T | None]]:
        """The equivalent of `decoder` for many values; it raises if any of them is invalid."""
        ...


def cannot_encode(topic: str, kind: str, reason: str) -> SerdeError:
    """The error for a value that cannot be encoded."""
    return SerdeError(
        f"cannot encode as {kind}: {reason}",
        at=f'topic "{topic}"',
        hint="pass a value of the serde's type, or use another serde",
    )


def cannot_decode(topic: str, kind: str, reason: str) -> SerdeError:
    """The error for bytes that cannot be decoded."""
    return SerdeError(
        f"cannot decode as {kind}: {reason}",
        at=f'topic "{topic}"',
        hint="the topic may hold another format; use the serde it was written with",
    )
