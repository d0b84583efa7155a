"""Defaults of Avro's fields as values: fastavro uses the JSON of the schema unchanged.

In JSON, bytes are strings and dates are numbers, so records would contain the wrong types.
"""

from collections.abc import Mapping
from typing import Any

from fastavro.read import LOGICAL_READERS

# Any: JSON that fastavro has parsed.
Json = Any


def with_default_values(parsed: Json) -> Json:
    """A schema parsed by fastavro, with values for defaults; unchanged if there are none."""
    named: dict[str, Json] = {}
    for each in parsed if isinstance(parsed, list) else [parsed]:
        if isinstance(each, dict):
            named.update(each.get("__named_schemas", {}))
    changed = _changed(parsed, named, {})
    return parsed if changed == parsed else changed


def _changed(value: Json, named: Mapping[str, Json], done: dict[int, Json]) -> Json:
    if not isinstance(value, dict | list):
        return value
    # The branches of a union share one dictionary of names.
    if id(value) not in done:
        if isinstance(value, list):
            done[id(value)] = [_changed(each, named, done) for each in value]
            return done[id(value)]
        found = {key: _changed(each, named, done) for key, each in value.items()}
        if isinstance(value.get("fields"), list):
            found["fields"] = [_field(each, named, done) for each in value["fields"]]
        done[id(value)] = found
    return done[id(value)]


def _field(field: Json, named: Mapping[str, Json], done: dict[int, Json]) -> Json:
    changed = {**field, "type": _changed(field["type"], named, done)}
    if "default" in field:
        changed["default"] = _value(field["type"], field["default"], named)
    return changed


def _value(schema: Json, default: Json, named: Mapping[str, Json]) -> Json:
    if isinstance(schema, list):
        present = [each for each in schema if each != "null"]
        return None if default is None or not present else _value(present[0], default, named)
    if isinstance(schema, str):
        if schema in named:
            return _value(named[schema], default, named)
        return default.encode("latin-1") if schema == "bytes" else default
    kind = schema["type"]
    match kind:
        case "record" | "error":
            return {
                each["name"]: _value(
                    each["type"], default.get(each["name"], each.get("default")), named
                )
                for each in schema["fields"]
            }
        case "array":
            return [_value(schema["items"], each, named) for each in default]
        case "map":
            return {key: _value(schema["values"], each, named) for key, each in default.items()}
        case "bytes" | "fixed":
            default = default.encode("latin-1")
    read = LOGICAL_READERS.get(f"{kind}-{schema.get('logicalType')}")
    return default if read is None else read(default, schema, None)
