"""The field types of the message table: one function per wire type, used as a dataclass field.

    @wire.request(ApiKey.HEARTBEAT, "0-4", flexible=4)
    class HeartbeatRequest:
        group_id: str = wire.string()
        group_instance_id: str | None = wire.string("3+", nullable="3+", default=None)

The first argument is the range of versions that have the field. `nullable` is the range in which
null is allowed, `tag` makes it a tagged field. Message classes are slotted dataclasses;
broker.protocol.message turns the declarations into encode and decode functions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from broker.protocol.api_keys import ApiKey

VERSION_MAX = 32767
MessageType = TypeVar("MessageType")


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; empty when first > last."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        """Whether the version is in the range."""
        return self.first <= version <= self.last

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        """Parse "3+", "0-4", "2" or None (no version)."""
        if text is None:
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), VERSION_MAX)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class Wire:
    """The wire format of one field."""

    kind: str
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: object
    element: "type[object] | str | None"
    compact: bool


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """The declaration of a message class, besides its fields."""

    api_key: ApiKey | None
    versions: Versions
    flexible_first: int
    is_request: bool


def _field(
    kind: str,
    versions: str,
    *,
    default: object,
    element: "type[object] | str | None" = None,
    compact: bool = True,
    **options: Any,  # nullable, tag, tagged: forwarded from the specifiers below
) -> Any:  # Any: dataclass field specifiers replace a value of the annotated type
    tagged = options.get("tagged") or (versions if options.get("tag") is not None else None)
    wire = Wire(
        kind,
        Versions.parse(versions),
        Versions.parse(options.get("nullable")),
        options.get("tag"),
        Versions.parse(tagged),
        default,
        element,
        compact,
    )
    if isinstance(default, list):
        return field(default_factory=list, metadata={"wire": wire})
    if kind == "struct" and default is not None:
        return field(default_factory=element, metadata={"wire": wire})  # type: ignore[arg-type]
    return field(default=default, metadata={"wire": wire})


def boolean(versions: str = "0+", *, default: bool = False, **options: Any) -> Any:
    """One byte, 0 or 1."""
    return _field("bool", versions, default=default, **options)


def int8(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """A signed byte."""
    return _field("int8", versions, default=default, **options)


def int16(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """A signed 16-bit integer."""
    return _field("int16", versions, default=default, **options)


def uint16(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """An unsigned 16-bit integer."""
    return _field("uint16", versions, default=default, **options)


def int32(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """A signed 32-bit integer."""
    return _field("int32", versions, default=default, **options)


def uint32(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """An unsigned 32-bit integer."""
    return _field("uint32", versions, default=default, **options)


def int64(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """A signed 64-bit integer."""
    return _field("int64", versions, default=default, **options)


def float64(versions: str = "0+", *, default: float = 0.0, **options: Any) -> Any:
    """A double."""
    return _field("float64", versions, default=default, **options)


def uuid(versions: str = "0+", *, default: bytes = bytes(16), **options: Any) -> Any:
    """A UUID as its 16 bytes."""
    return _field("uuid", versions, default=default, **options)


def string(
    versions: str = "0+", *, default: str | None = "", compact: bool = True, **options: Any
) -> Any:
    """A UTF-8 string; `compact=False` uses the old length even in flexible versions."""
    return _field("string", versions, default=default, compact=compact, **options)


def sized(versions: str = "0+", *, default: bytes | None = b"", **options: Any) -> Any:
    """Bytes, copied out of the frame."""
    return _field("bytes", versions, default=default, **options)


def records(versions: str = "0+", *, default: object = None, **options: Any) -> Any:
    """Record batches: a view of the frame when decoded, an attachment when encoded."""
    return _field("records", versions, default=default, **options)


def array(
    element: "type[object] | str", versions: str = "0+", *, default: object = (), **options: Any
) -> Any:
    """A list of structs (pass the class) or of primitives (pass the name of the kind)."""
    return _field(
        "array", versions, default=[] if default == () else default, element=element, **options
    )


def struct(
    element: type[object], versions: str = "0+", *, default: object = (), **options: Any
) -> Any:
    """A nested struct."""
    return _field("struct", versions, default=default, element=element, **options)


@dataclass_transform()
def part(cls: type[MessageType]) -> type[MessageType]:
    """A struct that is part of other messages."""
    return dataclass(slots=True)(cls)


def _declare(
    api_key: ApiKey | None, versions: str, flexible: int, *, is_request: bool
) -> Callable[[type[MessageType]], type[MessageType]]:
    spec = MessageSpec(api_key, Versions.parse(versions), flexible, is_request)

    def decorate(cls: type[MessageType]) -> type[MessageType]:
        made = dataclass(slots=True)(cls)
        SPECS[made] = spec
        return made

    return decorate


SPECS: dict[type[object], MessageSpec] = {}


@dataclass_transform()
def request(
    api_key: ApiKey, versions: str, *, flexible: int = VERSION_MAX
) -> Callable[[type[MessageType]], type[MessageType]]:
    """Declare the request of an API."""
    return _declare(api_key, versions, flexible, is_request=True)


@dataclass_transform()
def response(
    api_key: ApiKey, versions: str, *, flexible: int = VERSION_MAX
) -> Callable[[type[MessageType]], type[MessageType]]:
    """Declare the response of an API."""
    return _declare(api_key, versions, flexible, is_request=False)


@dataclass_transform()
def data(
    versions: str, *, flexible: int = VERSION_MAX
) -> Callable[[type[MessageType]], type[MessageType]]:
    """Declare a message that is not a request: a header, or a coordinator's record."""
    return _declare(None, versions, flexible, is_request=False)
