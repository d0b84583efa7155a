"""/compatibility: whether a schema could follow those that are there."""

from broker.errors import RegistryError
from broker.registry.refusals import version_not_found
from broker.registry.registry import Registry
from broker.registry.rest.answers import Json
from broker.registry.rest.endpoint import Endpoint, Endpoints
from broker.registry.rest.requests import RestRequest
from broker.serde.registry.api import LATEST

SUBJECT_NOT_FOUND = 40401


def _with_version(registry: Registry, asked: RestRequest) -> Json:
    version = asked.version
    try:
        return _verdict(asked, _differences(registry, asked, version))
    except RegistryError as error:
        # A subject without versions takes any schema as its latest, and has no other version.
        if error.code != SUBJECT_NOT_FOUND:
            raise
        if version != LATEST:
            raise version_not_found(version) from error
        return _verdict(asked, [])


def _with_all(registry: Registry, asked: RestRequest) -> Json:
    return _verdict(asked, _differences(registry, asked, None))


def _differences(registry: Registry, asked: RestRequest, version: int | None) -> list[str]:
    wanted = asked.schema_request()
    return registry.check(asked.subject, wanted.schema, version, normalize=asked.flag("normalize"))


def _verdict(asked: RestRequest, differences: list[str]) -> Json:
    content: dict[str, Json] = {"is_compatible": not differences}
    if differences and asked.flag("verbose"):
        content["messages"] = differences
    return content


ENDPOINTS: Endpoints = {
    "/compatibility/subjects/{subject}/versions": {"POST": Endpoint(_with_all)},
    "/compatibility/subjects/{subject}/versions/{version}": {"POST": Endpoint(_with_version)},
}
