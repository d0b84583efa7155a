"""HttpSchemaRegistry: a client of a schema registry, Millstream's or Confluent's."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Self, TypeVar
from urllib.parse import quote

from broker.clock import Clock
from broker.errors import RegistryError
from broker.serde.registry.api import LATEST, RegisteredSchema
from broker.serde.registry.transport import UNREACHABLE, RegistryTransport, TransportOptions
from broker.serde.schema.schema import Reference, Schema, SchemaKind

JsonObject = Mapping[str, object]
T = TypeVar("T")


class HttpSchemaRegistry:
    """The requests of a registry; any thread may send them. Error responses are RegistryError.

        registry = HttpSchemaRegistry("http://127.0.0.1:8081")
        schema_id = registry.register("orders-value", Schema('"string"'))

    It has no cache: serdes use a CachedRegistry with it.
    """

    def __init__(  # noqa: PLR0913 - one argument per option
        self,
        url: str | Sequence[str],
        *,
        auth: tuple[str, str] | str | None = None,
        headers: Mapping[str, str] | None = None,
        certificates: str | None = None,
        certificate: tuple[str, str] | None = None,
        verify: bool = True,
        timeout_s: float = 10.0,
        retries: int = 3,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        """One URL, several, or several in one string with commas; nothing is sent yet.

        `auth` is user and password, or a bearer token. `certificates` is a PEM file of trusted
        authorities, `certificate` the client's own certificate and its key.
        """
        urls = url.split(",") if isinstance(url, str) else url
        options = TransportOptions(
            auth=auth,
            headers=headers or {},
            certificates=certificates,
            certificate=certificate,
            verify=verify,
            timeout_s=timeout_s,
            retries=retries,
        )
        self._transport = RegistryTransport(
            [each.strip() for each in urls], options, clock=clock, random=random
        )

    # The interface of serdes (SchemaRegistry).

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of a schema, which is registered if necessary."""
        found = self._object(
            "POST",
            f"/subjects/{_part(subject)}/versions",
            query=_flags(normalize=normalize),
            body=_body(schema),
        )
        return _int(found, "id")

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id; the subject determines which context is searched first."""
        query = {} if subject is None else {"subject": subject}
        return _schema(self._object("GET", f"/schemas/ids/{schema_id}", query=query))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The registered version of a schema in a subject; RegistryError 40401 or 40403 if none."""
        query = _flags(normalize=normalize)
        return _registered(
            self._object("POST", f"/subjects/{_part(subject)}", query=query, body=_body(schema))
        )

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject; RegistryError 40401 or 40402 if it does not exist."""
        # A deleted version that another schema refers to must still be found.
        query = _flags(deleted=version != LATEST)
        path = f"/subjects/{_part(subject)}/versions/{_version(version)}"
        return _registered(self._object("GET", path, query=query))

    # For administration.

    def subjects(self, *, prefix: str = "", deleted: bool = False) -> list[str]:
        """Names of subjects."""
        query = _flags(deleted=deleted) | ({"subjectPrefix": prefix} if prefix else {})
        return _list(self._ask("GET", "/subjects", query=query), str)

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Versions of a subject, oldest first."""
        path = f"/subjects/{_part(subject)}/versions"
        return _list(self._ask("GET", path, query=_flags(deleted=deleted)), int)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete all versions; permanently only if they were soft deleted before."""
        query = _flags(permanent=permanent)
        return _list(self._ask("DELETE", f"/subjects/{_part(subject)}", query=query), int)

    def delete_version(
        self, subject: str, version: int = LATEST, *, permanent: bool = False
    ) -> int:
        """Delete one version; permanently only if it was soft deleted before."""
        path = f"/subjects/{_part(subject)}/versions/{_version(version)}"
        found = self._ask("DELETE", path, query=_flags(permanent=permanent))
        if type(found) is not int:
            raise _unexpected("a version")
        return found

    def incompatibilities(
        self, subject: str, schema: Schema, version: int = LATEST, *, normalize: bool = False
    ) -> list[str]:
        """The reasons why a schema is incompatible with a version of a subject; empty if none."""
        found = self._object(
            "POST",
            f"/compatibility/subjects/{_part(subject)}/versions/{_version(version)}",
            query={"verbose": "true"} | _flags(normalize=normalize),
            body=_body(schema),
        )
        messages = _list(found.get("messages", []), str)
        if found.get("is_compatible") is True:
            return []
        return messages or ["the registry reports only that the schema is not compatible"]

    def compatible(self, subject: str, schema: Schema, version: int = LATEST) -> bool:
        """Whether a schema is compatible with a version of a subject."""
        return not self.incompatibilities(subject, schema, version)

    def level(self, subject: str | None = None) -> str:
        """The compatibility level of a subject, or the global one."""
        query = {} if subject is None else {"defaultToGlobal": "true"}
        found = self._object("GET", _settings("config", subject), query=query)
        return _str(found, "compatibilityLevel")

    def set_level(self, level: str, subject: str | None = None) -> None:
        """Set a subject's compatibility level, or the global one."""
        self._ask("PUT", _settings("config", subject), body={"compatibility": str(level)})

    def mode(self, subject: str | None = None) -> str:
        """The mode of a subject, or the global one."""
        query = {} if subject is None else {"defaultToGlobal": "true"}
        return _str(self._object("GET", _settings("mode", subject), query=query), "mode")

    def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> None:
        """Set a subject's mode, or the global one."""
        query = _flags(force=force)
        self._ask("PUT", _settings("mode", subject), query=query, body={"mode": str(mode)})

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
    ) -> object:
        return self._transport.ask(method, path, query=query, body=body)

    def _object(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
    ) -> JsonObject:
        found = self._ask(method, path, query=query, body=body)
        if not isinstance(found, dict):
            raise _unexpected("an object")
        return found


def _part(name: str) -> str:
    """A name as one segment of a path, with any characters."""
    quoted = quote(name, safe="")
    # A client or a proxy would interpret these as relative paths.
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def _version(version: int) -> str:
    return "latest" if version == LATEST else str(version)


def _settings(kind: str, subject: str | None) -> str:
    return f"/{kind}" if subject is None else f"/{kind}/{_part(subject)}"


def _flags(**flags: bool) -> dict[str, str]:
    return {name: "true" for name, on in flags.items() if on}


def _body(schema: Schema) -> JsonObject:
    body: dict[str, object] = {"schema": schema.text}
    if schema.kind is not SchemaKind.AVRO:
        body["schemaType"] = schema.kind.value
    if schema.references:
        body["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
    return body


def _schema(found: JsonObject) -> Schema:
    kind = found.get("schemaType") or "AVRO"
    if not isinstance(kind, str) or kind not in list(SchemaKind):
        raise RegistryError(42201, f'schemas of type "{kind}" are not supported')
    references = tuple(_reference(each) for each in _list(found.get("references") or [], dict))
    return Schema(_str(found, "schema"), SchemaKind(kind), references)


def _reference(found: JsonObject) -> Reference:
    return Reference(_str(found, "name"), _str(found, "subject"), _int(found, "version"))


def _registered(found: JsonObject) -> RegisteredSchema:
    return RegisteredSchema(
        _str(found, "subject"), _int(found, "version"), _int(found, "id"), _schema(found)
    )


def _int(found: JsonObject, name: str) -> int:
    value = found.get(name)
    if type(value) is not int:
        raise _unexpected(f'a whole number "{name}"')
    return value


def _str(found: JsonObject, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise _unexpected(f'a string "{name}"')
    return value


def _list(found: object, kind: type[T]) -> list[T]:
    if not isinstance(found, list) or any(type(each) is not kind for each in found):
        raise _unexpected(f"a list of {kind.__name__}")
    return found


def _unexpected(wanted: str) -> RegistryError:
    return RegistryError(
        UNREACHABLE,
        f"the schema registry's answer lacks {wanted}",
        hint="check that the URL is that of a schema registry",
    )
