"""Schemas as Kafka's JSON converter writes them in messages.

    {"type": "struct", "fields": [{"type": "int32", "optional": false, "field": "id"}],
     "optional": false, "name": "customer", "version": 1, "doc": "...", "parameters": {}}

Arrays have "items", maps "keys" and "values", and any may have a "default".
"""

from collections.abc import Mapping

from connect.converters.json_decoding import decoding
from connect.converters.json_encoding import encoding
from connect.converters.payload_options import PayloadOptions
from connect.data import NO_DEFAULT, ConnectSchema, Field, Type
from connect.errors import DataError

_TYPES = {kind.value: kind for kind in Type}


def schema_to_json(schema: ConnectSchema | None, options: PayloadOptions) -> object:
    """The JSON value of a schema; null for no schema."""
    if schema is None:
        return None
    found: dict[str, object] = {"type": schema.type.value}
    match schema.type:
        case Type.ARRAY:
            found["items"] = schema_to_json(schema.value_schema, options)
        case Type.MAP:
            found["keys"] = schema_to_json(schema.key_schema, options)
            found["values"] = schema_to_json(schema.value_schema, options)
        case Type.STRUCT:
            found["fields"] = [_field_to_json(each, options) for each in schema.fields]
    found["optional"] = schema.optional
    rest = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    found |= {key: value for key, value in rest.items() if value is not None}
    if schema.parameters is not None:
        found["parameters"] = dict(schema.parameters)
    if schema.default is not NO_DEFAULT:
        found["default"] = encoding(schema, options).convert(schema.default)
    return found


def _field_to_json(field: Field, options: PayloadOptions) -> object:
    schema = schema_to_json(field.schema, options)
    assert isinstance(schema, dict), "a field has a schema"
    return {**schema, "field": field.name}


def schema_of_json(given: object, options: PayloadOptions) -> ConnectSchema | None:
    """The schema of a JSON value; DataError, with Kafka's message, if it is invalid.

    InexactNumber means that the value must be parsed again without floats.
    """
    if given is None:
        return None
    named = given.get("type") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(named, str):
        raise DataError("Schema must contain 'type' field")
    kind = _TYPES.get(named)
    if kind is None:
        raise DataError(f"Unknown schema type: {named}", hint=f"the types are {', '.join(_TYPES)}")
    key_schema = value_schema = None
    fields: tuple[Field, ...] = ()
    match kind:
        case Type.ARRAY:
            missing = "Array schema did not specify the element type"
            value_schema = _part(given, "items", missing, options)
        case Type.MAP:
            missing = "Map schema did not specify the key type"
            key_schema = _part(given, "keys", missing, options)
            missing = "Map schema did not specify the value type"
            value_schema = _part(given, "values", missing, options)
        case Type.STRUCT:
            fields = _fields(given, options)
    name, version, doc = given.get("name"), given.get("version"), given.get("doc")
    schema = ConnectSchema(
        kind,
        given.get("optional") is True,
        name if isinstance(name, str) else None,
        version if type(version) is int else None,
        doc if isinstance(doc, str) else None,
        _parameters(given.get("parameters")),
        fields=fields,
        key_schema=key_schema,
        value_schema=value_schema,
    )
    return _with_default(schema, given.get("default"), options)


def _part(
    given: Mapping[str, object], name: str, missing: str, options: PayloadOptions
) -> ConnectSchema:
    found = schema_of_json(given.get(name), options)
    if found is None:
        raise DataError(missing)
    return found


def _fields(given: Mapping[str, object], options: PayloadOptions) -> tuple[Field, ...]:
    fields = given.get("fields")
    if not isinstance(fields, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    return tuple(_field(each, options) for each in fields)


def _field(given: object, options: PayloadOptions) -> Field:
    name = given.get("field") if isinstance(given, dict) else None
    if not isinstance(name, str):
        raise DataError("Struct schema's field name not specified properly")
    schema = schema_of_json(given, options)
    assert schema is not None, "it is an object"
    return Field(name, schema)


def _parameters(given: object) -> dict[str, str] | None:
    if not isinstance(given, dict):
        return None
    if not all(isinstance(value, str) for value in given.values()):
        raise DataError("Schema parameters must have string values.")
    return given


def _with_default(schema: ConnectSchema, given: object, options: PayloadOptions) -> ConnectSchema:
    if given is None:
        return schema
    return schema.with_(default=decoding(schema, options).convert(given))
