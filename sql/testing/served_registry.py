"""Serves the registries of cases over HTTP, for workers in other processes."""

from broker.errors import RegistryError
from broker.rest import Body, Reply, RestApplication, RestRequest, RestService, Route
from broker.serde.registry.api import LATEST, RegisteredSchema
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from sql.testing.memory_registry import MemoryRegistry

Json = dict[str, object]
BODY_BYTES_MAX = 10 * 1024 * 1024


def topic_prefix(case: str) -> str:
    """The prefix of a case's topics on a shared broker."""
    return f"{case}."


class ServedRegistries:
    """An application for HttpServer: the registry of case "c7" is at /c7.

    Subjects do not contain the prefix that the topics of a case have on the broker.
    """

    def __init__(self) -> None:
        self._cases: dict[str, MemoryRegistry] = {}
        self.application = RestApplication(SERVICE, self)

    def add(self, case: str, registry: MemoryRegistry) -> None:
        """Serve the registry of a case."""
        self._cases[case] = registry

    def remove(self, case: str) -> None:
        """Stop serving it."""
        del self._cases[case]

    def schema(self, request: RestRequest) -> Json:
        """A schema by its id."""
        registry, _ = self._found(request)
        return _plain(registry.schema(int(request.variable("id"))))

    def register(self, request: RestRequest) -> Json:
        """Register a schema."""
        registry, subject = self._found(request)
        return {"id": registry.register(subject, _schema_of(request.json_object()))}

    def lookup(self, request: RestRequest) -> Json:
        """Find a schema of a subject."""
        registry, subject = self._found(request)
        return _registered(registry.lookup(subject, _schema_of(request.json_object())))

    def version(self, request: RestRequest) -> Json:
        """One version of a subject."""
        registry, subject = self._found(request)
        version = request.variable("version")
        found = registry.version(subject, LATEST if version == "latest" else int(version))
        return _registered(found)

    def _found(self, request: RestRequest) -> tuple[MemoryRegistry, str]:
        case = request.variable("case")
        subject = request.variable("subject") if "subject" in request.path else ""
        return self._cases[case], subject.removeprefix(topic_prefix(case))


def _at_once(request: RestRequest) -> bool:
    del request
    return True


def _error_reply(error: Exception) -> Reply:
    if isinstance(error, RegistryError):
        return Reply({"error_code": error.code, "message": error.message}, error.status)
    raise error


SUBJECT = "/{case}/subjects/{subject:path}"
BODY = Body(BODY_BYTES_MAX)
SERVICE: RestService[ServedRegistries, RestRequest] = RestService(
    (
        Route("GET", "/{case}/schemas/ids/{id:int}", ServedRegistries.schema, at_once=_at_once),
        Route("POST", f"{SUBJECT}/versions", ServedRegistries.register, BODY, _at_once),
        Route("GET", f"{SUBJECT}/versions/{{version}}", ServedRegistries.version, None, _at_once),
        Route("POST", SUBJECT, ServedRegistries.lookup, BODY, _at_once),
    ),
    _error_reply,
    RestRequest,
)


def _schema_of(body: Json) -> Schema:
    kind = SchemaKind(str(body.get("schemaType") or SchemaKind.AVRO.value))
    given = body.get("references") or []
    assert isinstance(given, list)
    references = tuple(Reference(each["name"], each["subject"], each["version"]) for each in given)
    return Schema(str(body["schema"]), kind, references)


def _plain(schema: Schema) -> Json:
    return {
        "schema": schema.text,
        "schemaType": schema.kind.value,
        "references": [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ],
    }


def _registered(found: RegisteredSchema) -> Json:
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.schema_id,
        **_plain(found.schema),
    }
