"""RegistryRequest: one request, whose parts are parsed and validated.

Invalid numbers in a path or a query make the URL unknown (404), a body that is not valid JSON is a
bad request (400), a missing one cannot be processed (422), as in Confluent's server. A boolean is
true for "true" in any case and false for everything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from broker.errors import RegistryError
from broker.registry.refusals import empty_schema, invalid_version
from broker.registry.registry import Registry
from broker.registry.rest.replies import INVALID_SCHEMA, MEDIA_TYPES
from broker.registry.values import JsonObject
from broker.rest import Body, HttpError, InvalidJson, Json, RestRequest, Route
from broker.serde.registry.api import LATEST
from broker.serde.schema.schema import Reference, Schema, SchemaKind

T = TypeVar("T")

INT_MAX = 2**31 - 1
DEPTH_MAX = 64
NO_LIMIT = -1
BODY_BYTES_MAX = 10 * 1024 * 1024
# A body without a type is treated as bytes; both are parsed as JSON.
JSON_BODY = Body(BODY_BYTES_MAX, frozenset({*MEDIA_TYPES, "application/octet-stream", ""}))


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """The body of a registration, a lookup or a check."""

    schema: Schema
    schema_id: int | None = None
    version: int | None = None
    metadata: JsonObject | None = None
    rule_set: JsonObject | None = None


class RegistryRequest(RestRequest):
    """One request: the variables of its path, its query, its body."""

    __slots__ = ()

    # --- path and query ---------------------------------------------------------------------

    @property
    def subject(self) -> str:
        """The subject in the path, decoded; it may contain slashes."""
        return self.variable("subject")

    @property
    def version(self) -> int:
        """The version in the path; "latest" and -1 are the same."""
        text = self.variable("version")
        number = LATEST if text == "latest" else _int(text)
        if number is None or (number < 1 and number != LATEST):
            raise invalid_version(text)
        return number

    @property
    def schema_id(self) -> int:
        """The id in the path."""
        number = _int(self.variable("id"))
        if number is None:
            raise HttpError(404)
        return number

    def number(self, name: str, default: int) -> int:
        """A parameter that is a number."""
        text = self.text(name)
        number = _int(text) if text else default
        if number is None:
            raise HttpError(404)
        return number

    @property
    def deleted(self) -> bool:
        """Whether soft deleted versions are included; some clients use another name."""
        return self.flag("deleted") or self.flag("lookupDeletedSchema")

    @property
    def within(self) -> str | None:
        """The subject of the query, which determines where to search."""
        return self.text("subject") or None

    @property
    def offset(self) -> int:
        """The number of results to skip; none if negative."""
        return max(self.number("offset", 0), 0)

    @property
    def limit(self) -> int:
        """The maximum number of results; no limit unless it is positive."""
        limit = self.number("limit", NO_LIMIT)
        return limit if limit > 0 else NO_LIMIT

    # --- body -------------------------------------------------------------------------------

    def content(self) -> JsonObject:
        """The body as a JSON object of limited depth."""
        if not self.body:
            raise InvalidJson(is_null=True)
        found = self.json_object()
        if _deeper_than(found, DEPTH_MAX):
            raise RegistryError(400, f"the body is nested deeper than {DEPTH_MAX} levels")
        return found

    def schema_request(self) -> SchemaRequest:
        """The body as a schema with its other fields."""
        content = self.content()
        text = _optional(content, "schema", str)
        kind = _optional(content, "schemaType", str) or SchemaKind.AVRO.value
        if not text or not text.strip():
            raise empty_schema()
        if kind not in SchemaKind.__members__:
            raise RegistryError(INVALID_SCHEMA, f"Invalid schema type {kind}")
        schema_id = _optional(content, "id", int)
        return SchemaRequest(
            Schema(text, SchemaKind(kind), _references(content)),
            # Clients without an id send -1, those without a version 0.
            schema_id=None if schema_id is None or schema_id < 0 else schema_id,
            version=_optional(content, "version", int) or None,
            metadata=_optional(content, "metadata", dict),
            rule_set=_optional(content, "ruleSet", dict),
        )


RegistryRoute = Route[Registry, RegistryRequest]


def always(request: RegistryRequest) -> bool:
    """For a handler that only looks something up: it is called directly, not in a thread."""
    del request
    return True


def unless_formatted(request: RegistryRequest) -> bool:
    """For one that looks up a schema, and parses it only to convert it to another format."""
    return not request.text("format")


def _references(content: JsonObject) -> tuple[Reference, ...]:
    found = []
    for each in _optional(content, "references", list) or ():
        if not isinstance(each, dict):
            raise _wrong('"references"', "a list of objects")
        name, subject = _optional(each, "name", str), _optional(each, "subject", str)
        version = _optional(each, "version", int)
        if name is None or subject is None or version is None:
            raise RegistryError(
                INVALID_SCHEMA, "Invalid schema reference: name, subject and version are needed"
            )
        found.append(Reference(name, subject, version))
    return tuple(found)


def _optional(content: JsonObject, name: str, kind: type[T]) -> T | None:
    """A field of the body, or None if it is missing or null."""
    value = content.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _wrong(f'"{name}"', NAMES[kind])
    if isinstance(value, int) and not -INT_MAX <= value <= INT_MAX:
        raise _wrong(f'"{name}"', "a 32-bit integer")
    return value


NAMES: Mapping[type, str] = {
    str: "a text",
    int: "a number",
    dict: "an object",
    list: "a list",
}


def _wrong(what: str, kind: str) -> RegistryError:
    return RegistryError(400, f"{what} must be {kind}")


def _int(text: str) -> int | None:
    """A 32-bit number, or None; spaces and underscores are not allowed."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 10:
        return None
    number = int(text)
    return number if -INT_MAX <= number <= INT_MAX else None


def _deeper_than(value: Json, depth: int) -> bool:
    """Whether objects and lists are nested deeper; a loop, to avoid deep recursion."""
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else cast("list[Json]", each))
        ]
        if not level:
            return False
    return True
