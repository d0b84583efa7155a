"""The registries of cases over HTTP: what workers of another process ask while a case runs."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from broker.errors import RegistryError
from broker.serde.registry.api import LATEST, RegisteredSchema
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from sql.testing.memory_registry import MemoryRegistry

Json = dict[str, object]


def topic_prefix(case: str) -> str:
    """What is before the names of a case's topics, where many cases share a broker."""
    return f"{case}."


class ServedRegistries:
    """An application for HttpServer: the registry of case "c7" is at /c7.

    It knows nothing of the prefix that the topics of a case have on the broker.
    """

    def __init__(self) -> None:
        self._cases: dict[str, MemoryRegistry] = {}
        subject = "/{case}/subjects/{subject:path}"
        self.application = Starlette(
            routes=[
                Route("/{case}/schemas/ids/{id:int}", _answering(self._schema)),
                Route(f"{subject}/versions", _answering(self._register), methods=["POST"]),
                Route(f"{subject}/versions/{{version}}", _answering(self._version)),
                Route(subject, _answering(self._lookup), methods=["POST"]),
            ]
        )

    def add(self, case: str, registry: MemoryRegistry) -> None:
        """Serve the registry of a case."""
        self._cases[case] = registry

    def remove(self, case: str) -> None:
        """Serve it no longer."""
        del self._cases[case]

    def _found(self, request: Request) -> tuple[MemoryRegistry, str]:
        case, subject = request.path_params["case"], request.path_params.get("subject", "")
        return self._cases[case], str(subject).removeprefix(topic_prefix(case))

    def _schema(self, request: Request, body: Json) -> Json:
        registry, _ = self._found(request)
        return _plain(registry.schema(int(request.path_params["id"])))

    def _register(self, request: Request, body: Json) -> Json:
        registry, subject = self._found(request)
        return {"id": registry.register(subject, _schema_of(body))}

    def _lookup(self, request: Request, body: Json) -> Json:
        registry, subject = self._found(request)
        return _registered(registry.lookup(subject, _schema_of(body)))

    def _version(self, request: Request, body: Json) -> Json:
        registry, subject = self._found(request)
        asked = str(request.path_params["version"])
        return _registered(registry.version(subject, LATEST if asked == "latest" else int(asked)))


def _answering(
    answer: Callable[[Request, Json], Json],
) -> Callable[[Request], object]:
    async def respond(request: Request) -> JSONResponse:
        body = await request.json() if request.method == "POST" else {}
        try:
            return JSONResponse(answer(request, body))
        except RegistryError as error:
            told = {"error_code": error.code, "message": error.message}
            return JSONResponse(told, status_code=error.status)

    return respond


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
