"""The JSON Schema of a model, as msgspec or pydantic describe the JSON that they write.

There are two differences. The model itself is at the top, where registries expect its title, not
behind a $ref. And objects are closed, as in Confluent's serializers: a field with a default may be
added to a closed object later, but not to an open one, which may have had a property with the same
name and any type.
"""

import json
from typing import Any

import msgspec

from broker.errors import SchemaError
from broker.serde.models.hints import shape_of
from broker.serde.models.json_codec import JsonCodec, is_pydantic
from broker.serde.schema.schema import Schema, SchemaKind

DRAFT = "https://json-schema.org/draft/2020-12/schema"
DEFINITIONS = "$defs"

# Any in this file: `list[Order]` is a type that `type` does not accept; and any JSON.


def json_schema_of(wanted: Any) -> Schema:
    """The schema that is registered for values of a type."""
    try:
        JsonCodec(wanted)
        found = _described(wanted)
    except (TypeError, NameError, NotImplementedError, RuntimeError) as error:
        # If Avro does not support the field either, its derivation names it.
        shape_of(wanted)
        raise SchemaError(
            f'"{getattr(wanted, "__name__", wanted)}" has no JSON Schema: {error}',
            hint="unions of models need a tag: use msgspec.Struct with tag=True, or pydantic",
        ) from error
    inner: dict[str, Any] = found.pop(DEFINITIONS, {})
    _lift(found, inner)
    root = found.get("$ref", "").removeprefix(f"#/{DEFINITIONS}/")
    if root in inner:
        found = inner.pop(root)
        _point(found, root)
        _point(inner, root)
    _close(found)
    _close(inner)
    end = {DEFINITIONS: inner} if inner else {}
    return Schema(json.dumps({"$schema": DRAFT, **found, **end}), SchemaKind.JSON)


def _described(wanted: Any) -> dict[str, Any]:
    if is_pydantic(wanted):
        found: dict[str, Any] = wanted.model_json_schema(by_alias=True)
        return found
    return msgspec.json.schema(wanted, schema_hook=_model_schema)


def _model_schema(wanted: Any) -> dict[str, Any]:
    """Called by msgspec for unknown classes."""
    if is_pydantic(wanted):
        return _described(wanted)
    raise NotImplementedError(f"{wanted.__name__} cannot be represented in JSON")


def _lift(value: Any, top: dict[str, Any]) -> None:
    """Move the definitions of nested pydantic models to the top, where $ref expects them."""
    waiting = [value, *top.values()]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            more = each.pop(DEFINITIONS, {})
            top.update(more)
            waiting += [*more.values(), *each.values()]
        elif isinstance(each, list):
            waiting += each


def _point(value: Any, root: str) -> None:
    """Change references to definitions at the top."""
    if isinstance(value, dict):
        for key, each in value.items():
            if each == f"#/{DEFINITIONS}/{root}":
                value[key] = "#"
            else:
                _point(each, root)
    elif isinstance(value, list):
        for each in value:
            _point(each, root)


def _close(value: Any) -> None:
    if isinstance(value, dict):
        if isinstance(value.get("properties"), dict) and value.get("type") == "object":
            value.setdefault("additionalProperties", False)
        for each in value.values():
            _close(each)
    elif isinstance(value, list):
        for each in value:
            _close(each)
