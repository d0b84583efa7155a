"""Values of Python types as JSON: dataclasses, msgspec and pydantic models, dates, containers."""

from contextlib import suppress
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, is_typeddict

from msgspec import inspect

from broker.errors import SerdeError
from broker.serde.models.json_codec import JsonCodec, is_pydantic
from streams.errors import TopologyError

T = TypeVar("T")

# Types that JSON supports: containers of these need no checks and no conversion.
PLAIN = (str, int, float, bool, dict, list, object, Any, NoneType)
_CONTAINERS = (
    inspect.ListType,
    inspect.DictType,
    inspect.SetType,
    inspect.FrozenSetType,
    inspect.TupleType,
    inspect.VarTupleType,
)
_OBJECTS = (
    inspect.StructType,
    inspect.DataclassType,
    inspect.TypedDictType,
    inspect.NamedTupleType,
    inspect.EnumType,
    inspect.LiteralType,
    inspect.UnionType,
    inspect.DateTimeType,
    inspect.DateType,
    inspect.TimeType,
    inspect.TimeDeltaType,
    inspect.DecimalType,
    inspect.UUIDType,
)


class JsonObjectSerde(Generic[T]):
    """Values of one type as JSON; missing fields get defaults, unknown ones are ignored.

    Values are validated when they are read; type checkers check what is written.
    """

    # Any: `list[Order]` and `Order | None` are types that type[T] does not admit.
    def __init__(self, hint: Any, *, at: str = "") -> None:
        """Prepare encoding and decoding; a type that JSON cannot represent raises TopologyError."""
        self._hint = hint
        self._classes = _classes(hint)
        self._at = at
        self._codec: JsonCodec[T] | None = None
        # A class may refer to later ones; then the codec is prepared at the first record.
        with suppress(NameError):
            self._prepare()

    def _prepare(self) -> JsonCodec[T]:
        try:
            self._codec = JsonCodec(self._hint)
        except TypeError as error:
            raise TopologyError(
                f'"{_name(self._hint)}" has no serde: {error}',
                at=self._at,
                hint="pass a Serde object, or use field types that JSON supports",
            ) from error
        return self._codec

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        """The value as compact JSON."""
        if value is None:
            return None
        if self._classes and not isinstance(value, self._classes):
            raise self._error(topic, "encode", f"the value is a {type(value).__name__}")
        try:
            return (self._codec or self._prepare()).encode(value)
        except Exception as error:  # a value's own methods may raise anything
            raise self._error(topic, "encode", str(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        """The value of a JSON document."""
        if data is None:
            return None
        try:
            return (self._codec or self._prepare()).decode(data)
        except Exception as error:  # a class's own checks may raise anything
            raise self._error(topic, "decode", str(error)) from error

    def _error(self, topic: str, verb: str, reason: str) -> SerdeError:
        return SerdeError(
            f"cannot {verb} as {_name(self._hint)}: {reason}",
            at=f'topic "{topic}"',
            hint="the fields must be those of the type; use another serde if they are not",
        )


# Any: anything that is used as a type.
def is_json_type(given: Any) -> bool:
    """Whether values of a type are written as JSON objects, or are containers of such values."""
    if is_pydantic(given) or is_typeddict(given):
        return True
    if isinstance(given, str) or given is None:
        return False
    try:
        found = inspect.type_info(given)
    except NameError:
        return True
    except TypeError:
        # A union whose parts cannot be distinguished; JsonCodec raises the reason.
        return _is_union(given) or isinstance(given, type)
    while isinstance(found, inspect.Metadata):
        found = found.type
    return isinstance(found, _OBJECTS) or (bool(get_args(given)) and isinstance(found, _CONTAINERS))


def is_plain_json(given: Any) -> bool:
    """Whether JSON supports a type directly, such as `dict[str, list[int]]`."""
    if _is_union(given):
        return all(map(is_plain_json, get_args(given)))
    origin = get_origin(given)
    if origin is None:
        return given in PLAIN
    return origin in (dict, list) and all(map(is_plain_json, get_args(given)))


def without_none(given: Any) -> Any:
    """T for `T | None`; other types unchanged."""
    others = [each for each in get_args(given) if each is not NoneType]
    return others[0] if _is_union(given) and len(others) == 1 else given


def _is_union(given: Any) -> bool:
    return get_origin(given) in (Union, UnionType)


def _classes(hint: Any) -> tuple[type, ...]:
    """The classes that a value may have; empty if that cannot be checked."""
    options = get_args(hint) if _is_union(hint) else (hint,)
    plain = [get_origin(each) or each for each in options]
    usable = all(isinstance(each, type) and not is_typeddict(each) for each in plain)
    return tuple(plain) if usable else ()


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
