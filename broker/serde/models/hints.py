"""Type hints to shapes; unsupported types are refused with the name of class and field."""

import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
)
from uuid import UUID

from broker.errors import SchemaError
from broker.serde.models.annotations import DecimalDigits, FieldNumber, Width, Zone
from broker.serde.models.class_fields import ClassField, doc_of, family_of, fields_of
from broker.serde.models.shapes import (
    ArrayShape,
    DecimalShape,
    EnumShape,
    FieldShape,
    LiteralShape,
    MapShape,
    ModelShape,
    OptionalShape,
    Scalar,
    Shape,
    UnionShape,
)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SCALARS: dict[object, Scalar] = {
    bool: Scalar.BOOLEAN,
    int: Scalar.LONG,
    float: Scalar.DOUBLE,
    str: Scalar.STRING,
    bytes: Scalar.BYTES,
    UUID: Scalar.UUID,
    date: Scalar.DATE,
    time: Scalar.TIME,
    datetime: Scalar.TIMESTAMP,
    timedelta: Scalar.DURATION,
}
# The scalar of an annotated type hint.
MARKED: dict[tuple[Scalar, object], Scalar] = {
    (Scalar.LONG, Width.INT32): Scalar.INT,
    (Scalar.DOUBLE, Width.FLOAT32): Scalar.FLOAT,
    (Scalar.TIMESTAMP, Zone.LOCAL): Scalar.LOCAL_TIMESTAMP,
}
MAKERS: dict[object, Callable[[list[object]], object]] = {
    list: list,
    Sequence: list,
    MutableSequence: list,
    set: set,
    Set: set,
    frozenset: frozenset,
    tuple: tuple,
}


# Any: `list[Order]` and `Order | None` are types that `type` does not accept.
def shape_of(hint: Any, *, namespace: str | None = None) -> Shape:
    """The shape of a type; `namespace` is that of models that have none of their own.

    >>> shape_of(list[int])
    ArrayShape(element=<Scalar.LONG: 'a 64-bit int'>, make=<class 'list'>)
    """
    return _Reader(namespace).shape(hint, ())


class _Reader:
    """Remembers models, because they may contain themselves."""

    def __init__(self, namespace: str | None) -> None:
        self._namespace = namespace
        self._where = "the value"
        self._models: dict[type, ModelShape] = {}
        self._names: dict[str, object] = {}

    def shape(self, hint: Any, markers: tuple[object, ...]) -> Shape:
        """The shape of a type hint with its annotations."""
        while True:
            if get_origin(hint) is Annotated:
                hint, *more = get_args(hint)
                markers = (*markers, *more)
            elif get_origin(hint) in (Required, NotRequired):
                (hint,) = get_args(hint)
            elif isinstance(hint, NewType):
                hint = hint.__supertype__
            else:
                break
        if hint in SCALARS:
            return self._scalar(SCALARS[hint], markers)
        if hint is Decimal:
            digits = [each for each in markers if isinstance(each, DecimalDigits)]
            chosen = digits[0] if digits else DecimalDigits()
            return DecimalShape(chosen.precision, chosen.scale)
        if get_origin(hint) in (Union, UnionType):
            return self._union(get_args(hint), markers)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._enum(hint)
        if family_of(hint) is not None:
            return self._model(hint)
        return self._container(hint)

    def _scalar(self, scalar: Scalar, markers: tuple[object, ...]) -> Scalar:
        for marker in markers:
            if isinstance(marker, Width | Zone):
                if (scalar, marker) not in MARKED:
                    raise self._refusal(f"{scalar.value} marked as {marker.value}")
                scalar = MARKED[scalar, marker]
        return scalar

    def _union(self, given: tuple[object, ...], markers: tuple[object, ...]) -> Shape:
        shapes = [self.shape(each, markers) for each in given if each is not NoneType]
        # A nested union, through Annotated, is flattened.
        flat = [
            each
            for shape in shapes
            for each in (shape.options if isinstance(shape, UnionShape) else (shape,))
        ]
        inner = flat[0] if len(flat) == 1 else UnionShape(tuple(flat))
        return OptionalShape(inner) if len(shapes) < len(given) else inner

    def _enum(self, cls: type[Enum]) -> EnumShape:
        symbols = tuple(each.name for each in cls)
        if not symbols:
            raise self._refusal(f'enum "{cls.__name__}" without members')
        shape = EnumShape(cls, *self._name_of(cls), doc_of(cls), symbols)
        self._claim(cls, shape.name, shape.namespace)
        return shape

    def _model(self, cls: type) -> ModelShape:
        if cls in self._models:
            return self._models[cls]
        family = family_of(cls)
        assert family is not None, "the caller has asked"
        shape = ModelShape(cls, family, *self._name_of(cls), doc_of(cls))
        self._claim(cls, shape.name, shape.namespace)
        self._models[cls] = shape
        outer = self._where
        for each in fields_of(cls):
            self._where = f'field "{each.attribute}" of "{cls.__name__}"'
            shape.fields.append(self._field(each))
        self._where = outer
        return shape

    def _field(self, given: ClassField) -> FieldShape:
        if not NAME.fullmatch(given.name):
            raise self._refusal(f'name "{given.name}"')
        shape, default = self.shape(given.hint, ()), given.default
        if given.may_be_absent:
            shape = shape if isinstance(shape, OptionalShape) else OptionalShape(shape)
            default = None
        markers = get_args(given.hint)[1:] if get_origin(given.hint) is Annotated else ()
        numbers = [each.number for each in markers if isinstance(each, FieldNumber)]
        return FieldShape(
            given.attribute,
            given.name,
            shape,
            default,
            given.factory,
            given.doc or _described(markers),
            numbers[0] if numbers else None,
            given.may_be_absent,
        )

    def _container(self, hint: Any) -> Shape:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return self._literal(arguments)
        if origin in (dict, Mapping, MutableMapping) and len(arguments) == 2:
            if self.shape(arguments[0], ()) is not Scalar.STRING:
                raise self._refusal(f'type "{hint}", whose keys are not strings')
            return MapShape(self.shape(arguments[1], ()))
        if origin is tuple and arguments[-1] is not Ellipsis:
            raise self._refusal(f'type "{hint}"; use tuple[T, ...]')
        if origin in MAKERS and arguments:
            return ArrayShape(self.shape(arguments[0], ()), MAKERS[origin])
        raise self._refusal(f'type "{hint.__name__ if isinstance(hint, type) else hint}"')

    def _literal(self, values: tuple[object, ...]) -> Shape:
        others = tuple(each for each in values if each is not None)
        kinds = {type(each) for each in others}
        if kinds not in ({str}, {int}):
            raise self._refusal(f"literal of {', '.join(map(repr, values))}")
        shape = LiteralShape(SCALARS[kinds.pop()], others)
        return shape if len(others) == len(values) else OptionalShape(shape)

    def _name_of(self, cls: type) -> tuple[str, str]:
        """Name and namespace of a class."""
        name = cls.__dict__.get("__schema_name__", cls.__name__)
        # A script's module has another name when it is imported.
        module = "" if cls.__module__ == "__main__" else cls.__module__
        default = module if self._namespace is None else self._namespace
        namespace = cls.__dict__.get("__schema_namespace__", default)
        if not all(map(NAME.fullmatch, [name, *(namespace.split(".") if namespace else [])])):
            raise self._refusal(f'class "{namespace}.{name}"')
        return name, namespace

    def _claim(self, cls: type, name: str, namespace: str) -> None:
        if self._names.setdefault(f"{namespace}.{name}", cls) is not cls:
            raise SchemaError(
                f'two classes have the name "{name}" in one schema',
                at=self._where,
                hint="give one of them another __schema_name__",
            )

    def _refusal(self, what: str) -> SchemaError:
        return SchemaError(
            f"schemas do not support the {what}",
            at=self._where,
            hint="see the supported types in streams/README.md",
        )


def _described(markers: tuple[Any, ...]) -> str:
    """The text of Annotated[..., Doc("...")] or of msgspec's and pydantic's descriptions."""
    for each in markers:
        text = getattr(each, "documentation", None) or getattr(each, "description", None)
        if isinstance(text, str):
            return text
    return ""
