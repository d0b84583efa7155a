"""Settings of topics, brokers and groups."""

from collections.abc import Iterable, Mapping, Sequence

from broker.client.administration.outcomes import collect, error_for
from broker.client.administration.values import ConfigChange, ConfigEntry, ConfigResource, Results
from broker.client.cluster import Cluster
from broker.client.config import one_of
from broker.errors import BrokerError
from broker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

RESOURCE_TYPES = {"topic": 2, "broker": 4, "broker logger": 8, "client metrics": 16, "group": 32}
RESOURCE_KINDS = {number: kind for kind, number in RESOURCE_TYPES.items()}
OPERATIONS = {"set": 0, "delete": 1, "append": 2, "subtract": 3}
SOURCES = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
BROKER_KINDS = ("broker", "broker logger")


def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    names: Sequence[str] | None,
    *,
    timeout_ms: int,
) -> Results[ConfigResource, dict[str, ConfigEntry]]:
    """Settings of resources: all, or only the named ones."""
    values: dict[ConfigResource, dict[str, ConfigEntry]] = {}
    errors: dict[ConfigResource, BrokerError] = {}
    for node_id, wanted in _by_node(resources).items():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=RESOURCE_TYPES[resource.kind],
                    resource_name=resource.name,
                    configuration_keys=None if names is None else list(names),
                )
                for resource in wanted
            ],
            include_synonyms=True,
        )
        response = cluster.call(node_id, request, DescribeConfigsResponse, timeout_ms=timeout_ms)
        found = collect(
            (
                (
                    resource := _resource(item.resource_type, item.resource_name),
                    item,
                    error_for(
                        item.error_code,
                        f'cannot describe {resource.kind} "{resource.name}"',
                        item.error_message,
                    ),
                )
                for item in response.results
            ),
            lambda item: {config.name: _entry(config) for config in item.configs},
        )
        values.update(found.values)
        errors.update(found.errors)
    return Results(values, errors)


def alter_configs(
    cluster: Cluster,
    changes: Mapping[ConfigResource, Iterable[ConfigChange]],
    *,
    validate_only: bool,
    timeout_ms: int,
) -> Results[ConfigResource, None]:
    """Change single settings; the others stay unchanged."""
    errors: dict[ConfigResource, BrokerError] = {}
    values: dict[ConfigResource, None] = {}
    for node_id, wanted in _by_node(changes).items():
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=RESOURCE_TYPES[resource.kind],
                    resource_name=resource.name,
                    configs=[_alterable(change) for change in changes[resource]],
                )
                for resource in wanted
            ],
            validate_only=validate_only,
        )
        response = cluster.call(
            node_id, request, IncrementalAlterConfigsResponse, timeout_ms=timeout_ms
        )
        found = collect(
            (
                (
                    resource := _resource(item.resource_type, item.resource_name),
                    item,
                    error_for(
                        item.error_code,
                        f'cannot change {resource.kind} "{resource.name}"',
                        item.error_message,
                    ),
                )
                for item in response.responses
            ),
            lambda item: None,
        )
        values.update(found.values)
        errors.update(found.errors)
    return Results(values, errors)


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Resources by broker: a broker returns only its own settings; None is any broker."""
    found: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        one_of("kind of resource", resource.kind, tuple(RESOURCE_TYPES))
        is_own = resource.kind in BROKER_KINDS and resource.name
        found.setdefault(int(resource.name) if is_own else None, []).append(resource)
    return found


def _resource(resource_type: int, name: str) -> ConfigResource:
    return ConfigResource(RESOURCE_KINDS.get(resource_type, str(resource_type)), name)


def _alterable(change: ConfigChange) -> IncrementalAlterConfigsRequestAlterableConfig:
    one_of("operation", change.operation, tuple(OPERATIONS))
    return IncrementalAlterConfigsRequestAlterableConfig(
        name=change.name, config_operation=OPERATIONS[change.operation], value=change.value
    )


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        SOURCES.get(config.config_source, "unknown"),
        config.read_only,
        config.is_sensitive,
        tuple(
            (synonym.name, synonym.value, SOURCES.get(synonym.source, "unknown"))
            for synonym in config.synonyms
        ),
        config.documentation,
    )
