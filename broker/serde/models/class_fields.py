"""The fields of a class of any family: dataclass, msgspec, pydantic, attrs, tuple, TypedDict."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, get_type_hints, is_typeddict

import msgspec

from broker.errors import SchemaError
from broker.serde.models.json_codec import is_pydantic
from broker.serde.models.shapes import REQUIRED, Family

# Factories whose value is always the same; one that creates ids or times is not a default.
_STEADY = (list, dict, set, frozenset, tuple, str, int, float, bool, bytes)


@dataclass(frozen=True, slots=True)
class ClassField:
    """A field as its class declares it."""

    attribute: str
    name: str  # in schemas: msgspec's rename, pydantic's alias
    hint: object
    default: object = REQUIRED
    factory: Callable[[], object] | None = None
    doc: str = ""
    may_be_absent: bool = False


# Any: classes of libraries that may not be installed.
def family_of(cls: Any) -> Family | None:
    """How objects of a class are read and created; None if it is not a model."""
    if not isinstance(cls, type):
        return None
    if is_typeddict(cls):
        return Family.DICT
    if is_pydantic(cls):
        return Family.PYDANTIC
    known = (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, msgspec.Struct)
        or hasattr(cls, "__attrs_attrs__")
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )
    return Family.ATTRIBUTES if known else None


def fields_of(cls: Any) -> list[ClassField]:
    """The fields of a model, in order."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise SchemaError(
            f'"{cls.__name__}" has no schema: {error}',
            hint="define the classes of its fields in its module, before the serde is created",
        ) from error
    if is_typeddict(cls):
        return [
            ClassField(name, name, hint, may_be_absent=name in cls.__optional_keys__)
            for name, hint in hints.items()
        ]
    return list(_declared(cls, hints))


def _declared(cls: Any, hints: dict[str, Any]) -> Iterator[ClassField]:
    if is_pydantic(cls):
        yield from _pydantic_fields(cls, hints)
    elif issubclass(cls, msgspec.Struct):
        for field in msgspec.structs.fields(cls):
            default, factory = _given(field.default, field.default_factory, msgspec.NODEFAULT)
            name = field.name
            yield ClassField(name, field.encode_name, hints[name], default, factory)
    elif dataclasses.is_dataclass(cls):
        for one in dataclasses.fields(cls):
            if one.init:
                default, factory = _given(one.default, one.default_factory, dataclasses.MISSING)
                yield ClassField(one.name, one.name, hints[one.name], default, factory)
    elif hasattr(cls, "__attrs_attrs__"):
        yield from _attrs_fields(cls, hints)
    else:
        for name in cls._fields:
            yield ClassField(name, name, hints[name], cls._field_defaults.get(name, REQUIRED))


def _pydantic_fields(cls: Any, hints: dict[str, Any]) -> Iterator[ClassField]:
    for name, each in cls.model_fields.items():
        factory = each.default_factory
        default = REQUIRED if each.is_required() else each.default
        if factory is not None:
            default = _steady(factory)
        alias, doc = each.alias or name, each.description or ""
        yield ClassField(name, alias, hints[name], default, factory, doc)


def _attrs_fields(cls: Any, hints: dict[str, Any]) -> Iterator[ClassField]:
    for each in cls.__attrs_attrs__:
        if not each.init:
            continue
        default, factory = each.default, None
        if hasattr(default, "takes_self"):
            factory = None if default.takes_self else default.factory
            default = REQUIRED if factory is None else _steady(factory)
        elif repr(default) == "NOTHING":
            default = REQUIRED
        yield ClassField(each.name, each.name, hints[each.name], default, factory)


def _given(default: object, factory: Any, nothing: object) -> tuple[object, Any]:
    """A field's default and factory; a factory with a constant result also has a default."""
    if factory is not nothing:
        return _steady(factory), factory
    return (REQUIRED if default is nothing else default), None


def _steady(factory: Any) -> object:
    """The result of a factory, if it is always the same."""
    if factory in _STEADY or family_of(factory) is not None:
        made: object = factory()
        return made
    return REQUIRED


def doc_of(cls: type) -> str:
    """A class's own docstring; not the generated one of dataclasses and tuples."""
    text = cls.__dict__.get("__doc__") or ""
    if text.startswith(f"{cls.__name__}(") or text == "An enumeration.":
        return ""
    return cleandoc(text)
