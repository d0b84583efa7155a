"""Values of any Python type as JSON text: by msgspec, or by pydantic for its own models.

pydantic is never imported here: who gives a pydantic model has imported it.
"""

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class JsonCodec(Generic[T]):
    """Two functions, made once for a type; both raise whatever the type's own checks raise.

    >>> JsonCodec(list[int]).decode(b"[1, 2]")
    [1, 2]
    """

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]

    # Any: `list[Order]` and `Order | None` are types that type[T] does not admit.
    def __init__(self, wanted: Any) -> None:
        """Prepare both ways; TypeError for a type that JSON cannot have, NameError for one whose
        fields have types that are not defined yet."""
        if is_pydantic(wanted):
            self.encode, self.decode = _dump_model, wanted.model_validate_json
        else:
            self.encode = _ENCODER.encode
            self.decode = msgspec.json.Decoder(wanted, dec_hook=_model_of).decode


# Any: a class of a library that need not be installed.
def is_pydantic(wanted: Any) -> bool:
    """Whether a type is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None and isinstance(wanted, type) and issubclass(wanted, pydantic.BaseModel)
    )


# Any: see is_pydantic.
def _dump_model(value: Any) -> bytes:
    # By alias, because that is how they are read.
    text: str = value.model_dump_json(by_alias=True)
    return text.encode()


# msgspec calls these two for classes it does not know; pydantic models may be fields of others.
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
