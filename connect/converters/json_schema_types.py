"""Conversion of Connect's schemas to JSON Schema and back, as in Confluent's converter.

INT8 to INT64      integer with "connect.type"         ARRAY     array
FLOAT32, FLOAT64   number with "connect.type"          STRUCT    object with properties
BOOLEAN            boolean                             MAP       object with additionalProperties;
STRING             string; enum with parameters                  array of objects of key and value
BYTES              string with "connect.type"                    if keys are not STRING
Decimal            number with "connect.type" bytes    optional  oneOf with null

"connect.index" stores the order of fields, since properties have no order; titles are names. A
choice of several types is a struct with a field for each. Schemas of other tools have fewer
properties: then integer is INT64 and number is FLOAT64.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.serde.schema.json_documents import Subschema
from broker.serde.schema.json_schema import JsonSchema
from connect.converters.json_decoding import InexactNumber, decoding
from connect.converters.json_encoding import encoding
from connect.converters.payload_options import PayloadOptions
from connect.data import DECIMAL_NAME, NO_DEFAULT, STRING, ConnectSchema, Field, Type
from connect.errors import DataError
from connect.logical_values import logical_name

NAMESPACE = "io.confluent.connect.json"
UNION_NAME = f"{NAMESPACE}.OneOf"
ENUM_PARAMETER = f"{NAMESPACE}.Enum"
DEPTH_MAX = 50

Json = Mapping[str, object]

_NUMBERS = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
}
_BY_NAME: dict[object, Type] = {name: kind for kind, (_, name) in _NUMBERS.items()}
_BY_NAME["bytes"] = Type.BYTES


@dataclass(frozen=True, slots=True)
class JsonSchemaOptions:
    """The settings that change the mapping."""

    payload: PayloadOptions
    additional_properties: bool = True
    optional_for_nonrequired: bool = False


def json_of(schema: ConnectSchema, options: JsonSchemaOptions) -> dict[str, object]:
    """The JSON Schema for a schema of Connect."""
    return _ToJson(options).type(schema, None)


class _ToJson:
    """Converts one schema to JSON Schema."""

    def __init__(self, options: JsonSchemaOptions) -> None:
        self._options = options

    def type(self, schema: ConnectSchema, index: int | None) -> dict[str, object]:
        place: dict[str, object] = {} if index is None else {"connect.index": index}
        if self._options.payload.is_union(schema):
            null = [{"type": "null"}] if schema.optional else []
            fields = enumerate(schema.fields)
            return {
                "oneOf": null + [self._present(each.schema, at) for at, each in fields],
                **place,
            }
        if schema.optional:
            return {"oneOf": [{"type": "null"}, self._present(schema, None)], **place}
        return self._present(schema, index)

    def _present(self, schema: ConnectSchema, index: int | None) -> dict[str, object]:
        found = self._plain(schema)
        if schema.name is not None:
            found["title"] = schema.name
        if schema.doc is not None:
            found["description"] = schema.doc
        if schema.default is not NO_DEFAULT:
            found["default"] = encoding(schema, self._options.payload).convert(schema.default)
        if schema.version is not None:
            found["connect.version"] = schema.version
        parameters = {
            key: value
            for key, value in (schema.parameters or {}).items()
            if not key.startswith(NAMESPACE)
        }
        if parameters:
            found["connect.parameters"] = parameters
        if index is not None:
            found["connect.index"] = index
        return found

    def _plain(self, schema: ConnectSchema) -> dict[str, object]:
        match schema.type:
            case Type.BOOLEAN:
                return {"type": "boolean"}
            case Type.STRING:
                return _string(schema)
            case Type.BYTES:
                kind = "number" if logical_name(schema) == DECIMAL_NAME else "string"
                return {"type": kind, "connect.type": "bytes"}
            case Type.ARRAY:
                return {"type": "array", "items": self._element(schema.value_schema)}
            case Type.MAP:
                return self._map(schema)
            case Type.STRUCT:
                return self._object(schema)
        kind, name = _NUMBERS[schema.type]
        return {"type": kind, "connect.type": name}

    def _element(self, schema: ConnectSchema | None, index: int | None = None) -> dict[str, object]:
        if schema is None:
            raise DataError("an array or map has no schema of its elements")
        return self.type(schema, index)

    def _map(self, schema: ConnectSchema) -> dict[str, object]:
        if schema.key_schema is not None and self._options.payload.is_object(schema):
            values = self._element(schema.value_schema)
            return {"type": "object", "additionalProperties": values, "connect.type": "map"}
        entry = {
            "key": self._element(schema.key_schema, 0),
            "value": self._element(schema.value_schema, 1),
        }
        items = {"type": "object", "properties": entry}
        return {"type": "array", "items": items, "connect.type": "map"}

    def _object(self, schema: ConnectSchema) -> dict[str, object]:
        properties = {
            each.name: self.type(each.schema, at) for at, each in enumerate(schema.fields)
        }
        found: dict[str, object] = {"type": "object", "properties": properties}
        if not self._options.additional_properties:
            found["additionalProperties"] = False
        return found


def _string(schema: ConnectSchema) -> dict[str, object]:
    first = f"{ENUM_PARAMETER}."
    parameters = schema.parameters or {}
    if ENUM_PARAMETER not in parameters:
        return {"type": "string"}
    return {"enum": [each.removeprefix(first) for each in parameters if each.startswith(first)]}


def connect_of(
    schema: JsonSchema, options: JsonSchemaOptions, version: int | None = None
) -> ConnectSchema:
    """The schema of Connect for a JSON Schema; `version` is its version in the registry."""
    return _ToConnect(schema, options).type(schema.documents.root, version=version)


class _ToConnect:
    """Converts one schema from JSON Schema."""

    def __init__(self, schema: JsonSchema, options: JsonSchemaOptions) -> None:
        self._documents = schema.documents
        self._options = options
        self._depth = 0

    def type(
        self, place: Subschema, *, optional: bool = False, version: int | None = None
    ) -> ConnectSchema:
        if self._depth >= DEPTH_MAX:
            raise DataError(
                "the JSON Schema is recursive, or nested too deeply",
                hint="Connect does not support recursive schemas",
            )
        self._depth += 1
        try:
            return self._type(place, optional, version)
        finally:
            self._depth -= 1

    def _type(self, place: Subschema, optional: bool, version: int | None) -> ConnectSchema:
        given = place.schema
        if not isinstance(given, dict) or not given:
            raise DataError(f"Unsupported schema type: {given}", hint="the schema allows anything")
        if isinstance(given.get("$ref"), str):
            return self.type(self._referred(place), optional=optional, version=version)
        choice = _choice(given)
        if choice is not None:
            return self._union(place, choice, optional, version)
        if "allOf" in given:
            return self._all_of(place, optional, version)
        made = self._plain(place)
        return self._described(made, given, optional, version)

    def _referred(self, place: Subschema) -> Subschema:
        given = place.schema
        assert isinstance(given, dict), "it has a $ref"
        found = self._documents.resolve(given["$ref"], place.base)
        if found is None:
            raise DataError(f'$ref names "{given["$ref"]}", which is not among the references')
        return found

    def _union(
        self, place: Subschema, choice: list[object], optional: bool, version: int | None
    ) -> ConnectSchema:
        present = [each for each in choice if not _is_null(each)]
        null = len(present) < len(choice)
        if len(present) == 1:
            return self.type(
                Subschema(present[0], place.base), optional=optional or null, version=version
            )
        fields = tuple(
            Field(f"{UNION_NAME}.field.{at}", self.type(Subschema(each, place.base), optional=True))
            for at, each in enumerate(present)
        )
        made = ConnectSchema(Type.STRUCT, null or optional, UNION_NAME, fields=fields)
        given = place.schema
        assert isinstance(given, dict), "it has a choice"
        return self._described(made, given, optional, version)

    def _all_of(self, place: Subschema, optional: bool, version: int | None) -> ConnectSchema:
        """Objects are merged; of other types, the one with the most properties is used."""
        given = place.schema
        assert isinstance(given, dict), "it has an allOf"
        properties: dict[str, Subschema] = {}
        required: set[str] = set()
        self._collect(place, properties, required, 0)
        if properties:
            made = self._struct(properties, required)
            return self._described(made, given, optional, version)
        parts = given["allOf"]
        rest = {key: each for key, each in given.items() if key != "allOf"}
        merged = rest
        for each in parts if isinstance(parts, list) else []:
            if isinstance(each, dict):
                merged = {**merged, **each}
        return self.type(Subschema(merged, place.base), optional=optional, version=version)

    def _collect(
        self, place: Subschema, properties: dict[str, Subschema], required: set[str], depth: int
    ) -> None:
        given = place.schema
        if not isinstance(given, dict) or depth > DEPTH_MAX:
            return
        if isinstance(given.get("$ref"), str):
            self._collect(self._referred(place), properties, required, depth + 1)
        for each in given.get("allOf") or []:
            self._collect(Subschema(each, place.base), properties, required, depth + 1)
        for name, each in (given.get("properties") or {}).items():
            properties[name] = Subschema(each, place.base)
        required.update(given.get("required") or [])

    def _plain(self, place: Subschema) -> ConnectSchema:
        given = place.schema
        assert isinstance(given, dict), "others have been refused"
        connect = given.get("connect.type")
        match _kind_of(given):
            case "boolean":
                return ConnectSchema(Type.BOOLEAN)
            case "integer":
                return ConnectSchema(_BY_NAME.get(connect, Type.INT64))
            case "number":
                return ConnectSchema(_BY_NAME.get(connect, Type.FLOAT64))
            case "string":
                return ConnectSchema(Type.BYTES if connect == "bytes" else Type.STRING)
            case "enum":
                return _enum(given)
            case "array":
                return self._array(place, given, connect)
            case "object":
                return self._map_or_struct(place, given, connect)
        raise DataError(f"Unsupported schema type: {given.get('type')}")

    def _array(self, place: Subschema, given: Json, connect: object) -> ConnectSchema:
        items = given.get("items")
        if not isinstance(items, dict):
            raise DataError("Array schema did not specify the items type")
        inner = items.get("properties")
        if connect == "map" and isinstance(inner, dict) and {"key", "value"} <= inner.keys():
            key = self.type(Subschema(inner["key"], place.base))
            value = self.type(Subschema(inner["value"], place.base))
            return ConnectSchema(Type.MAP, key_schema=key, value_schema=value)
        return ConnectSchema(Type.ARRAY, value_schema=self.type(Subschema(items, place.base)))

    def _map_or_struct(self, place: Subschema, given: Json, connect: object) -> ConnectSchema:
        if connect == "map":
            values = self.type(Subschema(given.get("additionalProperties"), place.base))
            return ConnectSchema(Type.MAP, key_schema=STRING, value_schema=values)
        properties = given.get("properties")
        found = properties if isinstance(properties, dict) else {}
        required = given.get("required")
        return self._struct(
            {name: Subschema(each, place.base) for name, each in found.items()},
            set(required) if isinstance(required, list) else set(),
        )

    def _struct(self, properties: Mapping[str, Subschema], required: set[str]) -> ConnectSchema:
        places = {name: _index(each.schema) for name, each in properties.items()}
        # Properties without an index follow the others, in their written order.
        ordered = sorted(
            properties, key=lambda name: place if (place := places[name]) is not None else 1 << 31
        )
        fields = []
        for name in ordered:
            null = self._options.optional_for_nonrequired and name not in required
            fields.append(Field(name, self.type(properties[name], optional=null)))
        return ConnectSchema(Type.STRUCT, fields=tuple(fields))

    def _described(
        self, schema: ConnectSchema, given: Json, optional: bool, version: int | None
    ) -> ConnectSchema:
        title, doc = given.get("title"), given.get("description")
        own_version = given.get("connect.version", version)
        parameters = given.get("connect.parameters")
        if isinstance(parameters, dict):
            texts = {str(key): str(each) for key, each in parameters.items()}
            schema = schema.with_(parameters={**(schema.parameters or {}), **texts})
        schema = schema.with_(
            optional=schema.optional or optional,
            name=schema.name or (title if isinstance(title, str) else None),
            version=own_version if type(own_version) is int else None,
            doc=doc if isinstance(doc, str) else None,
        )
        if given.get("default") is None:
            return schema
        try:
            default = decoding(schema, self._options.payload).convert(given["default"])
        except (DataError, InexactNumber):
            return schema  # an invalid default is ignored
        return schema.with_(default=default)


def _kind_of(given: Json) -> object:
    if isinstance(given.get("enum"), list):
        return given["type"] if given.get("type") in ("integer", "number", "boolean") else "enum"
    kind = given.get("type")
    if isinstance(kind, list):
        return kind[0]
    if kind is None:
        return "object" if "properties" in given else None
    return kind


def _choice(given: Json) -> list[object] | None:
    """The alternatives of a choice."""
    for word in ("oneOf", "anyOf"):
        found = given.get(word)
        if isinstance(found, list) and found:
            return found
    kinds = given.get("type")
    if isinstance(kinds, list) and len(kinds) > 1:
        return [{**given, "type": each} if each != "null" else {"type": each} for each in kinds]
    return None


def _is_null(given: object) -> bool:
    return isinstance(given, dict) and given.get("type") == "null"


def _enum(given: Json) -> ConnectSchema:
    symbols = given["enum"]
    assert isinstance(symbols, list), "its kind is enum"
    parameters = {ENUM_PARAMETER: ""}
    parameters |= {f"{ENUM_PARAMETER}.{each}": str(each) for each in symbols}
    return ConnectSchema(Type.STRING, parameters=parameters)


def _index(given: object) -> int | None:
    found = given.get("connect.index") if isinstance(given, dict) else None
    return found if type(found) is int else None
