"""/compatibility: whether a schema is compatible with registered ones."""

from broker.errors import RegistryError
from broker.registry.refusals import version_not_found
from broker.registry.registry import Registry
from broker.registry.rest.registry_request import JSON_BODY, RegistryRequest, RegistryRoute
from broker.rest import Json
from broker.serde.registry.api import LATEST

SUBJECT_NOT_FOUND = 40401


def _with_version(registry: Registry, request: RegistryRequest) -> Json:
    version = request.version
    try:
        return _verdict(request, _differences(registry, request, version))
    except RegistryError as error:
        # A subject without versions accepts any schema as its latest, and has no other version.
        if error.code != SUBJECT_NOT_FOUND:
            raise
        if version != LATEST:
            raise version_not_found(version) from error
        return _verdict(request, [])


def _with_all(registry: Registry, request: RegistryRequest) -> Json:
    return _verdict(request, _differences(registry, request, None))


def _differences(registry: Registry, request: RegistryRequest, version: int | None) -> list[str]:
    wanted = request.schema_request()
    return registry.check(
        request.subject, wanted.schema, version, normalize=request.flag("normalize")
    )


def _verdict(request: RegistryRequest, differences: list[str]) -> Json:
    content: dict[str, Json] = {"is_compatible": not differences}
    if differences and request.flag("verbose"):
        content["messages"] = differences
    return content


ROUTES: tuple[RegistryRoute, ...] = (
    RegistryRoute("POST", "/compatibility/subjects/{subject}/versions", _with_all, body=JSON_BODY),
    RegistryRoute(
        "POST",
        "/compatibility/subjects/{subject}/versions/{version}",
        _with_version,
        body=JSON_BODY,
    ),
)
