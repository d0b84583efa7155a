"""find_mismatch: the part of a value that does not match its shape; called only after an error."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from uuid import UUID

from broker.serde.models.shapes import (
    ArrayShape,
    DecimalShape,
    EnumShape,
    Family,
    LiteralShape,
    MapShape,
    ModelShape,
    OptionalShape,
    Scalar,
    Shape,
    UnionShape,
)

ARRAYS = (list, tuple, set, frozenset)
DEPTH_MAX = 200
_INT32, _INT64 = 1 << 31, 1 << 63


def _is_whole(value: object, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (_is_whole(value, 1 << 1023))


FITS: dict[Scalar, Callable[[object], bool]] = {
    Scalar.BOOLEAN: lambda value: isinstance(value, bool),
    Scalar.INT: lambda value: _is_whole(value, _INT32),
    Scalar.LONG: lambda value: _is_whole(value, _INT64),
    Scalar.FLOAT: _is_number,
    Scalar.DOUBLE: _is_number,
    Scalar.STRING: _is_text,
    Scalar.BYTES: lambda value: isinstance(value, bytes),
    Scalar.UUID: lambda value: isinstance(value, UUID),
    Scalar.DATE: lambda value: isinstance(value, date) and not isinstance(value, datetime),
    Scalar.TIME: lambda value: isinstance(value, time) and value.tzinfo is None,
    Scalar.TIMESTAMP: lambda value: isinstance(value, datetime) and value.utcoffset() is not None,
    Scalar.LOCAL_TIMESTAMP: lambda value: isinstance(value, datetime) and value.tzinfo is None,
    Scalar.DURATION: lambda value: isinstance(value, timedelta),
}


def find_mismatch(shape: Shape, value: object, path: str = "$", depth: int = 0) -> str | None:
    """The mismatch, with its path; None if there is none.

    >>> find_mismatch(ArrayShape(Scalar.STRING, list), ["a", 5])
    '$[1] must be a str, not int'
    """
    if depth > DEPTH_MAX:
        return f"{path[:80]}... is nested more than {DEPTH_MAX} deep"
    match shape:
        case OptionalShape(inner=inner):
            return None if value is None else find_mismatch(inner, value, path, depth + 1)
        case UnionShape(options=options):
            return _misfit_of_union(options, value, path, depth)
        case ModelShape():
            return _misfit_of_model(shape, value, path, depth)
        case ArrayShape(element=element):
            if not isinstance(value, ARRAYS):
                return _wrong(path, "a list", value)
            found = (
                find_mismatch(element, each, f"{path}[{index}]", depth + 1)
                for index, each in enumerate(value)
            )
            return next(filter(None, found), None)
        case MapShape(value=inner):
            return _misfit_of_map(inner, value, path, depth)
        case _:
            return _misfit_of_leaf(shape, value, path)


def _misfit_of_leaf(
    shape: Scalar | DecimalShape | EnumShape | LiteralShape, value: object, path: str
) -> str | None:
    match shape:
        case Scalar():
            return None if FITS[shape](value) else _wrong(path, shape.value.strip(), value)
        case EnumShape(cls=cls):
            return None if isinstance(value, cls) else _wrong(path, f'a "{cls.__name__}"', value)
        case LiteralShape(values=values):
            return None if value in values else f"{path} must be one of {values!r}, not {value!r}"
        case DecimalShape():
            if not isinstance(value, Decimal):
                return _wrong(path, "a Decimal", value)
            try:
                unscaled_with(shape)(value)
            except (DecimalException, ValueError):
                digits = f"{shape.precision} digits, {shape.scale} after the decimal point"
                return f"{path} must have at most {digits}, not {value}"
            return None


def _misfit_of_union(
    options: tuple[Shape, ...], value: object, path: str, depth: int
) -> str | None:
    found = [find_mismatch(each, value, path, depth + 1) for each in options]
    if None in found:
        return None
    for option, text in zip(options, found, strict=True):
        if isinstance(option, ModelShape) and isinstance(value, option.cls):
            return text
    return f"{path} has type {type(value).__name__}, which is none of its types"


def _misfit_of_model(shape: ModelShape, value: object, path: str, depth: int) -> str | None:
    is_dict = shape.family is Family.DICT
    if not isinstance(value, dict if is_dict else shape.cls):
        return _wrong(path, f'a "{shape.cls.__name__}"', value)
    for field in shape.fields:
        here = f"{path}.{field.attribute}"
        if isinstance(value, dict):
            if field.attribute not in value and not field.may_be_absent:
                return f"{here} is missing"
            inner = value.get(field.attribute)
        else:
            inner = getattr(value, field.attribute, None)
        found = find_mismatch(field.shape, inner, here, depth + 1)
        if found is not None:
            return found
    return None


def _misfit_of_map(inner: Shape, value: object, path: str, depth: int) -> str | None:
    if not isinstance(value, Mapping):
        return _wrong(path, "a dict", value)
    for key, each in value.items():
        if not _is_text(key):
            return _wrong(f"the key {key!r} of {path}", "a str", key)
        found = find_mismatch(inner, each, f"{path}[{key!r}]", depth + 1)
        if found is not None:
            return found
    return None


def _wrong(path: str, expected: str, value: object) -> str:
    return f"{path} must be {expected}, not {_what(value)}"


def _what(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if abs(value) < _INT64 else "an int with more bits"
    return type(value).__name__


def unscaled_with(shape: DecimalShape) -> Callable[[Decimal], int]:
    """A function from a Decimal to its digits as an integer; raises if there are too many."""
    exact = Context(prec=shape.precision, traps=[Inexact, InvalidOperation])
    step, scale = Decimal(1).scaleb(-shape.scale), Decimal(shape.scale)

    def unscaled(value: Decimal) -> int:
        return int(exact.scaleb(exact.quantize(value, step), scale))

    return unscaled
