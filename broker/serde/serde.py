"""Serde: a value to bytes and back; None stands for null both ways."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from broker.errors import SerdeError

T = TypeVar("T")


class Serde(Protocol[T]):
    """What turns values of one type into the bytes of a record's key or value, and back."""

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        """The bytes of a value; SerdeError when it cannot be bytes."""
        ...

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        """The value of bytes; SerdeError when they are none."""
        ...


@runtime_checkable
class BindableSerde(Serde[T], Protocol[T]):
    """A serde with a shorter way for the many records of one topic.

    Its functions take no None. What they raise is of no use to a user: who calls them catches it,
    and asks `serialize` or `deserialize` for an error that says more.
    """

    def encoder(self, topic: str) -> Callable[[T], bytes | None]:
        """What `serialize` does with values for a topic."""
        ...

    def decoder(self, topic: str) -> Callable[[bytes], T | None]:
        """What `deserialize` does with bytes of a topic."""
        ...


@runtime_checkable
class ChunkSerde(BindableSerde[T], Protocol[T]):
    """A serde that decodes many values in less time than one by one."""

    def chunk_decoder(self, topic: str) -> Callable[[Sequence[bytes]], list[T | None]]:
        """What `decoder` does, with many values at once; it raises if any of them is none."""
        ...


def cannot_encode(topic: str, kind: str, reason: str) -> SerdeError:
    """The error for a value that cannot be bytes."""
    return SerdeError(
        f"cannot encode as {kind}: {reason}",
        at=f'topic "{topic}"',
        hint="pass a value of the serde's type, or use another serde",
    )


def cannot_decode(topic: str, kind: str, reason: str) -> SerdeError:
    """The error for bytes that are no value."""
    return SerdeError(
        f"cannot decode as {kind}: {reason}",
        at=f'topic "{topic}"',
        hint="the topic may hold another format; use the serde it was written with",
    )
