"""The registry's REST API: one table of routes.

GET    /subjects                                    names
POST   /subjects/{subject}                          find a schema        DELETE
GET    /subjects/{subject}/versions                 numbers              POST registers
GET    /subjects/{subject}/versions/{version}       one version          DELETE
       .../schema  .../referencedby
GET    /subjects/{subject}/metadata                 the latest version with properties
GET    /schemas  /schemas/types  /schemas/ids/{id}[/schema|/subjects|/versions]
       /schemas/guids/{guid}[/ids]
POST   /compatibility/subjects/{subject}/versions[/{version}]
GET    /config[/{subject}]  /mode[/{subject}]       PUT, DELETE
GET    /contexts  /v1/metadata/id  /v1/metadata/version  /metrics  /
"""

from broker.exposition import METRICS_TYPE, Exposition
from broker.registry.registry import Registry
from broker.registry.rest import compatibility, schemas, settings, subjects
from broker.registry.rest.context_paths import within_context
from broker.registry.rest.registry_request import RegistryRequest, RegistryRoute, always
from broker.registry.rest.replies import MEDIA_TYPES, error_reply
from broker.registry.subject_names import ALL_CONTEXTS
from broker.rest import Json, PlainText, RequestCounts, RestApplication, RestService, own_version

CLUSTER_NAME = "schema-registry"

RegistryApplication = RestApplication[Registry, RegistryRequest]


def registry_application(registry: Registry, *, cluster_id: str = "") -> RegistryApplication:
    """The application; the cluster id is returned by /v1/metadata/id."""
    counts = RequestCounts()
    routes = (
        *subjects.ROUTES,
        *schemas.ROUTES,
        *compatibility.ROUTES,
        *settings.ROUTES,
        RegistryRoute("GET", "/", lambda _, __: {}, at_once=always),
        RegistryRoute(
            "GET", "/v1/metadata/id", lambda _, __: _metadata_id(cluster_id), at_once=always
        ),
        RegistryRoute("GET", "/v1/metadata/version", _metadata_version, at_once=always),
        RegistryRoute(
            "GET", "/metrics", lambda found, _: _metrics(found, counts), media_type=METRICS_TYPE
        ),
    )
    service = RestService(
        routes,
        error_reply,
        RegistryRequest,
        media_types=MEDIA_TYPES,
        negotiates=True,
        rewrite=within_context,
    )
    return RestApplication(service, registry, counts=counts)


def _metadata_id(cluster_id: str) -> Json:
    clusters = {"kafka-cluster": cluster_id, "schema-registry-cluster": CLUSTER_NAME}
    return {"id": "", "scope": {"path": [], "clusters": clusters}}


def _metadata_version(registry: Registry, request: RegistryRequest) -> Json:
    del registry, request
    return {"version": own_version(), "commitId": ""}


def _metrics(registry: Registry, counts: RequestCounts) -> Json:
    out = Exposition()
    counts.expose(out, "millstream_registry_requests_total")
    everything = registry.all_schemas(prefix=ALL_CONTEXTS)
    for what, text, count in (
        ("subjects", "Subjects.", len({stored.subject for stored in everything})),
        ("versions", "Versions of all subjects.", len(everything)),
        ("schemas", "Different schemas.", len({stored.guid for stored in everything})),
    ):
        out.single(f"millstream_registry_{what}", "gauge", text, count)
    return PlainText(out.text())
