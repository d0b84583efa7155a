"""Values of any Python type as JSON, with msgspec, or with pydantic for its own models.

pydantic is never imported here: a caller with a pydantic model has already imported it.
"""

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class JsonCodec(Generic[T]):
    """Two functions, created once per type; both raise whatever the type's validation raises.

    >>> JsonCodec(list[int]).decode(b"[1, 2]")
    [1, 2]
    """

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]

    # Any: `list[Order]` and `Order | None` are types that type[T] does not accept.
    def __init__(self, wanted: Any) -> None:
        """Prepare both directions; TypeError for types that JSON does not support.

        NameError for a type whose fields have types that are not defined yet.
        """
        if is_pydantic(wanted):
            self.encode, self.decode = _dump_model, wanted.model_validate_json
        else:
            self.encode = _ENCODER.encode
            self.decode = msgspec.json.Decoder(wanted, dec_hook=_model_of).decode


# Any: a class of a library that may not be installed.
def is_pydantic(wanted: Any) -> bool:
    """Whether a type is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None and isinstance(wanted, type) and issubclass(wanted, pydantic.BaseModel)
    )


# Any: see is_pydantic.
def _dump_model(value: Any) -> bytes:
    # By alias, as they are read.
    text: str = value.model_dump_json(by_alias=True)
    return text.encode()


# msgspec calls these two for unknown classes; pydantic models may be fields of other models.
def _dumped(value: Any) -> object:
    if is_pydantic(type(value)):
        dumped: object = value.model_dump(mode="json", by_alias=True)
        return dumped
    raise TypeError(f"{type(value).__name__} cannot be represented in JSON")


def _model_of(wanted: Any, value: object) -> object:
    if is_pydantic(wanted):
        found: object = wanted.model_validate(value)
        return found
    if isinstance(value, wanted):
        return value
    raise TypeError(f"{type(value).__name__} is not {wanted.__name__}")


_ENCODER = msgspec.json.Encoder(enc_hook=_dumped)
