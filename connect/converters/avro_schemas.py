"""Conversion of Connect's schemas to Avro and back, as in Confluent's converter.

INT8, INT16   int with "connect.type"          Decimal     bytes with logical type decimal
INT32, INT64  int, long                        Date        int with logical type date
FLOAT32, 64   float, double                    Time        int with logical type time-millis
STRING        string; enum with a parameter    Timestamp   long with logical type timestamp-millis
BYTES         bytes; fixed with a parameter    STRUCT      record
ARRAY         array                            MAP         map; array of records of key and value
optional      union with null                                 if keys are not STRING

A union of several types is a struct with a field for each. Information that only one side has is
stored in properties of Avro's types ("connect.name" and so on), and in parameters of Connect's
schemas.
"""

from dataclasses import dataclass, replace

from broker.errors import SchemaError
from broker.serde.schema.avro_types import MISSING, AvroField, AvroType, is_map_entry
from connect.converters import avro_names as names
from connect.converters.avro_defaults import default_from_json, default_to_json
from connect.converters.scrubbed_names import scrubbed, scrubbed_full
from connect.data import (
    DATE_NAME,
    DECIMAL_NAME,
    NO_DEFAULT,
    STRING,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Field,
    Type,
    date,
    decimal,
    time,
    timestamp,
)
from connect.errors import DataError
from connect.logical_values import logical_name, scale_of

Json = dict[str, object]

_PLAIN = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL = {
    DATE_NAME: "date",
    TIME_NAME: "time-millis",
    TIMESTAMP_NAME: "timestamp-millis",
}


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """The settings that change the mapping."""

    enhanced: bool = False
    scrub: bool = False
    meta_data: bool = True
    optional_map_keys: bool = False
    ignore_default_for_nullables: bool = False

    def name(self, name: str) -> str:
        """A field's name in Avro."""
        return scrubbed(name) if self.scrub else name

    def full_name(self, name: str) -> str:
        """A schema's name in Avro."""
        return scrubbed_full(name) if self.scrub else name

    def is_avro_map(self, schema: ConnectSchema) -> bool:
        """Whether a map is also a map in Avro, whose keys are strings."""
        keys = schema.key_schema
        return (
            keys is not None
            and keys.type is Type.STRING
            and (not keys.optional or self.optional_map_keys)
        )


def is_union(schema: ConnectSchema) -> bool:
    """Whether a struct represents an Avro union."""
    return schema.type is Type.STRUCT and schema.name == names.UNION_NAME


def avro_of(schema: ConnectSchema, options: AvroOptions) -> object:
    """The JSON of the Avro schema for a schema of Connect."""
    return _ToAvro(options).type(schema)


class _ToAvro:
    """Converts one schema to Avro; later uses of a type only contain its name."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._declared: dict[str, ConnectSchema] = {}
        self._unnamed = 0

    def type(self, schema: ConnectSchema) -> object:
        if is_union(schema):
            branches = [self._present(_required(each.schema)) for each in schema.fields]
            return ["null", *branches] if schema.optional else branches
        if not schema.optional:
            return self._present(schema)
        present = self._present(_required(schema))
        # The default of a union is of its first type.
        has_default = schema.default is not NO_DEFAULT and schema.type is not Type.STRUCT
        return [present, "null"] if has_default else ["null", present]

    def _present(self, schema: ConnectSchema) -> object:
        match schema.type:
            case Type.STRUCT:
                return self._record(schema)
            case Type.ARRAY:
                return {"type": "array", "items": self._element(schema), **self._properties(schema)}
            case Type.MAP if self._options.is_avro_map(schema):
                return {"type": "map", "values": self._element(schema), **self._properties(schema)}
            case Type.MAP:
                return {"type": "array", "items": self._entry(schema), **self._properties(schema)}
            case Type.STRING if self._is_enum(schema):
                return self._enum(schema)
            case Type.BYTES if names.FIXED_SIZE in (schema.parameters or {}) and schema.name:
                return self._fixed(schema)
        properties = self._properties(schema)
        plain = _PLAIN[schema.type]
        return {"type": plain, **properties} if properties else plain

    def _element(self, schema: ConnectSchema) -> object:
        if schema.value_schema is None:
            raise DataError(f"{schema} has no schema of its elements")
        return self.type(schema.value_schema)

    def _record(self, schema: ConnectSchema) -> object:
        name = self._name(schema)
        if (known := self._declared.get(name)) is not None and known == schema:
            return name
        self._declared[name] = schema
        parameters = schema.parameters or {}
        found: Json = {"type": "record", "name": name}
        if names.RECORD_DOC in parameters:
            found["doc"] = parameters[names.RECORD_DOC]
        found["fields"] = [
            self._field(each.name, each.schema, parameters.get(names.FIELD_DOC + each.name))
            for each in schema.fields
        ]
        return found | self._properties(schema)

    def _field(self, name: str, schema: ConnectSchema, doc: str | None = None) -> Json:
        found: Json = {"name": self._options.name(name), "type": self.type(schema)}
        if doc is not None:
            found["doc"] = doc
        if schema.default is not NO_DEFAULT:
            if not (schema.optional and schema.type is Type.STRUCT):
                found["default"] = default_to_json(schema, schema.default)
        elif schema.optional:
            found["default"] = None
        return found

    def _entry(self, schema: ConnectSchema) -> Json:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataError(f"{schema} has no schema of its keys or values")
        name = self._options.full_name(schema.name) if schema.name else ""
        found: Json = {
            "type": "record",
            "name": name or f"{names.NAMESPACE}.{names.MAP_ENTRY}",
            "fields": [
                self._field("key", schema.key_schema),
                self._field("value", schema.value_schema),
            ],
        }
        if name:
            found[names.CONNECT_INTERNAL_TYPE] = names.MAP_ENTRY
        return found

    def _is_enum(self, schema: ConnectSchema) -> bool:
        return self._options.enhanced and names.ENUM_PARAMETER in (schema.parameters or {})

    def _enum(self, schema: ConnectSchema) -> object:
        parameters = schema.parameters or {}
        name = parameters[names.ENUM_PARAMETER]
        if name in self._declared:
            return name
        self._declared[name] = schema
        first = f"{names.ENUM_PARAMETER}."
        symbols = [each.removeprefix(first) for each in parameters if each.startswith(first)]
        found: Json = {"type": "enum", "name": name, "symbols": symbols}
        short = (schema.name or "").rpartition(".")[2]
        if names.ENUM_DOC + short in parameters:
            found["doc"] = parameters[names.ENUM_DOC + short]
        if names.ENUM_DEFAULT + short in parameters:
            found["default"] = parameters[names.ENUM_DEFAULT + short]
        return found | self._properties(schema)

    def _fixed(self, schema: ConnectSchema) -> object:
        name = self._name(schema)
        if name in self._declared:
            return name
        self._declared[name] = schema
        size = int((schema.parameters or {})[names.FIXED_SIZE])
        return {"type": "fixed", "name": name, "size": size, **self._properties(schema)}

    def _name(self, schema: ConnectSchema) -> str:
        if schema.name:
            return self._options.full_name(schema.name)
        self._unnamed += 1
        return names.DEFAULT_NAME + (str(self._unnamed) if self._unnamed > 1 else "")

    def _properties(self, schema: ConnectSchema) -> Json:
        found: Json = {}
        name = logical_name(schema)
        parameters = dict(schema.parameters or {})
        if name == DECIMAL_NAME:
            found["scale"] = scale_of(schema)
            found["precision"] = int(parameters.get(names.PRECISION, names.PRECISION_DEFAULT))
        if self._options.meta_data:
            found |= _meta_data(schema, parameters)
        if name == DECIMAL_NAME:
            found["logicalType"] = "decimal"
        elif name is not None:
            found["logicalType"] = _LOGICAL[name]
        return found | {key: each for key, each in parameters.items() if key.startswith("avro")}


def _meta_data(schema: ConnectSchema, parameters: dict[str, str]) -> Json:
    found: Json = {}
    from_field = parameters.pop(names.FIELD_DEFAULT, None) is not None
    if schema.doc is not None:
        found[names.CONNECT_DOC] = schema.doc
    if schema.version is not None:
        found[names.CONNECT_VERSION] = schema.version
    if parameters:
        found[names.CONNECT_PARAMETERS] = dict(parameters)
    if schema.default is not NO_DEFAULT and not from_field:
        found[names.CONNECT_DEFAULT] = default_to_json(schema, schema.default)
    if schema.name is not None:
        found[names.CONNECT_NAME] = schema.name
    if schema.type in (Type.INT8, Type.INT16):
        found[names.CONNECT_TYPE] = schema.type.value
    return found


def _required(schema: ConnectSchema) -> ConnectSchema:
    return schema.with_(optional=False) if schema.optional else schema


def connect_of(root: AvroType, options: AvroOptions, version: int | None = None) -> ConnectSchema:
    """The schema of Connect for an Avro schema; `version` is its version in the registry."""
    return _ToConnect(options).type(root, version=version)


class _ToConnect:
    """Converts one schema from Avro."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options

    def type(
        self,
        node: AvroType,
        *,
        optional: bool = False,
        default: object = MISSING,
        version: int | None = None,
    ) -> ConnectSchema:
        if node.kind == "union":
            present = [each for each in node.branches if each.kind != "null"]
            if len(present) == 1:
                # Connect's default is in a property; Avro's own default is lost if null is allowed.
                null = len(node.branches) > 1
                return self.type(present[0], optional=null or optional, version=version)
        made = self._plain(node)
        made = self._with_properties(made, node, version)
        if optional and not made.optional:
            made = made.with_(optional=True)
        return self._with_default(made, node, default)

    def _plain(self, node: AvroType) -> ConnectSchema:
        match node.kind:
            case "record" | "error":
                return self._struct(node)
            case "union":
                return self._union(node)
            case "array" if node.element is not None:
                return self._array(node.element)
            case "map" if node.element is not None:
                return ConnectSchema(
                    Type.MAP, key_schema=STRING, value_schema=self.type(node.element)
                )
            case "enum":
                return ConnectSchema(Type.STRING, parameters=self._enum_parameters(node))
            case "null":
                raise DataError("Standalone null schemas are not supported by this converter")
        return _scalar(node)

    def _struct(self, node: AvroType) -> ConnectSchema:
        parameters: dict[str, str] = {}
        if self._options.meta_data:
            if node.doc is not None:
                parameters[names.RECORD_DOC] = node.doc
            documented = (each for each in node.fields if each.doc is not None)
            parameters |= {names.FIELD_DOC + each.name: each.doc or "" for each in documented}
        fields = tuple(Field(each.name, self._field(each)) for each in node.fields)
        return ConnectSchema(Type.STRUCT, parameters=parameters or None, fields=fields)

    def _field(self, field: AvroField) -> ConnectSchema:
        return self.type(field.type, default=field.default)

    def _union(self, node: AvroType) -> ConnectSchema:
        present = [each for each in node.branches if each.kind != "null"]
        fields = [Field(self._branch(each), self.type(each, optional=True)) for each in present]
        if len({each.name for each in fields}) < len(fields):
            raise DataError("Multiple union schemas map to the Connect union field name")
        null = len(present) < len(node.branches)
        return ConnectSchema(Type.STRUCT, null, names.UNION_NAME, fields=tuple(fields))

    def _branch(self, node: AvroType) -> str:
        if not node.name:
            return node.kind
        return node.name if self._options.enhanced else node.name.rpartition(".")[2]

    def _array(self, element: AvroType) -> ConnectSchema:
        if not is_map_entry(element):
            return ConnectSchema(Type.ARRAY, value_schema=self.type(element))
        parts = {each.name: each.type for each in element.fields}
        if parts.keys() != {"key", "value"}:
            raise DataError(
                "Found map encoded as array of key-value pairs, but array elements do not match "
                "the expected format."
            )
        key, value = self.type(parts["key"]), self.type(parts["value"])
        return ConnectSchema(Type.MAP, key_schema=key, value_schema=value)

    def _enum_parameters(self, node: AvroType) -> dict[str, str]:
        short = node.name.rpartition(".")[2]
        found: dict[str, str] = {}
        if self._options.meta_data and node.doc is not None:
            found[names.ENUM_DOC + short] = node.doc
        if self._options.meta_data and node.symbol_default is not None:
            found[names.ENUM_DEFAULT + short] = node.symbol_default
        found[names.ENUM_PARAMETER] = node.name
        return found | {f"{names.ENUM_PARAMETER}.{each}": each for each in node.symbols}

    def _with_properties(
        self, schema: ConnectSchema, node: AvroType, version: int | None
    ) -> ConnectSchema:
        given = node.properties
        doc = given.get(names.CONNECT_DOC)
        own_version = given.get(names.CONNECT_VERSION, version)
        if own_version is not None and type(own_version) is not int:
            raise DataError(f"Invalid Connect version found: {own_version}")
        parameters = {**(schema.parameters or {}), **self._parameters(given)}
        parameters |= {key: str(each) for key, each in given.items() if key.startswith("avro")}
        name = given.get(names.CONNECT_NAME)
        if name is not None and not isinstance(name, str):
            raise DataError(f"Invalid schema name: {name}")
        name = name or node.name
        if schema.name is None and name and not name.startswith(names.DEFAULT_NAME):
            schema = schema.with_(name=name)
        return replace(
            schema,
            version=own_version if schema.version is None else schema.version,
            doc=doc if isinstance(doc, str) and self._options.meta_data else None,
            parameters=parameters or None,
        )

    def _parameters(self, given: Json) -> dict[str, str]:
        parameters = given.get(names.CONNECT_PARAMETERS)
        if parameters is None or not self._options.meta_data:
            return {}
        if not isinstance(parameters, dict):
            raise DataError(f"Expected JSON object for schema parameters but found: {parameters}")
        for value in parameters.values():
            if not isinstance(value, str):
                raise DataError(
                    f"Expected schema parameter values to be strings but found: {value}"
                )
        return parameters

    def _with_default(
        self, schema: ConnectSchema, node: AvroType, field_default: object
    ) -> ConnectSchema:
        own = node.properties.get(names.CONNECT_DEFAULT)
        given = own if field_default is MISSING or field_default is None else field_default
        if given is None:
            return schema
        if own is None and self._options.meta_data:
            parameters = {**(schema.parameters or {}), names.FIELD_DEFAULT: "true"}
            schema = schema.with_(parameters=parameters)
        try:
            return schema.with_(default=default_from_json(schema, given))
        except DataError:
            return schema  # as in Confluent's converter: an invalid default is ignored


def _scalar(node: AvroType) -> ConnectSchema:
    logical = node.properties.get("logicalType")
    match node.kind, logical:
        case (("bytes" | "fixed"), "decimal"):
            return _decimal(node)
        case "fixed", _:
            return ConnectSchema(Type.BYTES, parameters={names.FIXED_SIZE: str(node.size)})
        case "int", "date":
            return date()
        case "int", "time-millis":
            return time()
        case "long", "timestamp-millis":
            return timestamp()
        case "int", None:
            return ConnectSchema(_INTEGERS.get(node.properties.get(names.CONNECT_TYPE), Type.INT32))
    if node.kind not in _KINDS:
        raise SchemaError(f"Couldn't translate unsupported schema type {node.kind}.")
    return ConnectSchema(_KINDS[node.kind])


_INTEGERS: dict[object, Type] = {"int8": Type.INT8, "int16": Type.INT16}
_KINDS = {
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}


def _decimal(node: AvroType) -> ConnectSchema:
    scale, precision = node.properties.get("scale"), node.properties.get("precision")
    schema = decimal(scale if type(scale) is int else 0)
    parameters = dict(schema.parameters or {})
    if precision is not None:
        if type(precision) is not int:
            raise DataError("precision property must be a JSON Integer.")
        if precision != names.PRECISION_DEFAULT:
            parameters[names.PRECISION] = str(precision)
    if node.kind == "fixed":
        parameters[names.FIXED_SIZE] = str(node.size)
    return schema.with_(parameters=parameters)
