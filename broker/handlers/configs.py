"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: settings of topics and the broker."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from broker.config import TopicConfig, settings
from broker.coordinator.parts import Parts, batched, each
from broker.coordinator.topics import Outcome, Topic, check_name
from broker.errors import BrokerError, ErrorCode
from broker.handlers.answers import follow, gather
from broker.handlers.config_entries import ConfigEntry, broker_entries, topic_entries
from broker.handlers.partitions import REFUSED, error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32

# Resources without settings: described as empty, never altered.
WITHOUT_SETTINGS = frozenset({BROKER_LOGGER, CLIENT_METRICS, GROUP})

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3

RESOURCE_TYPES_VERSION_MIN = 1

TOPICS_AT_ONCE_MAX = 100

Responses = list[AlterConfigsResourceResponse]
Alteration = AlterConfigsResource | IncrementalAlterConfigsRequestAlterConfigsResource


def describe_configs(
    state: BrokerState, request: DescribeConfigsRequest, context: RequestContext
) -> Parts[DescribeConfigsResponse]:
    """All settings of each resource, or only the requested ones."""
    # A resource that is listed twice, with the same settings, is described once.
    resources = {
        (one.resource_type, one.resource_name, tuple(one.configuration_keys or ())): one
        for one in request.resources
    }
    results = yield from each(
        resources.values(), partial(_describe, state, synonyms=request.include_synonyms)
    )
    return DescribeConfigsResponse(results=results)


def _describe(
    state: BrokerState, resource: DescribeConfigsResource, *, synonyms: bool
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    try:
        entries = _entries(state, resource.resource_type, resource.resource_name)
    except BrokerError as error:
        result.error_code = error.code
        result.error_message = error.message
        return result
    wanted = set(resource.configuration_keys or ())
    result.configs = [
        _described(entry, synonyms=synonyms)
        for entry in entries
        if not wanted or entry.name in wanted
    ]
    return result


def _entries(state: BrokerState, resource_type: int, name: str) -> list[ConfigEntry]:
    if resource_type == TOPIC:
        return topic_entries(state.config, _known_topic(state, name).overrides)
    if resource_type == BROKER:
        _check_broker(state, name)
        # The empty name means the dynamic defaults of all brokers, which are not supported.
        return broker_entries(state.config) if name else []
    if resource_type in WITHOUT_SETTINGS:
        return []
    raise BrokerError(ErrorCode.INVALID_REQUEST, f"resource type {resource_type} is not known")


def _described(entry: ConfigEntry, *, synonyms: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        entry.name,
        entry.value,
        entry.read_only,
        entry.source,
        synonyms=[
            DescribeConfigsSynonym(synonym.name, synonym.value, synonym.source)
            for synonym in (entry.synonyms if synonyms else ())
        ],
        config_type=entry.kind,
        documentation=None,
    )


def _known_topic(state: BrokerState, name: str) -> Topic:
    check_name(name)
    topic = state.topics.get(name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{name}" does not exist')
    return topic


def _check_broker(state: BrokerState, name: str) -> None:
    if name not in ("", str(state.node_id)):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f'broker id "{name[:40]}" is not known: the only broker is {state.node_id}',
        )


def alter_configs(
    state: BrokerState, request: AlterConfigsRequest, context: RequestContext
) -> Parts[AlterConfigsResponse | Pending[AlterConfigsResponse]]:
    """Replace all own settings of topics."""

    def alter(resource: AlterConfigsResource) -> Topic:
        topic = _altered_topic(state, resource)
        overrides: dict[str, str] = {}
        for config in resource.configs:
            if config.value is None:
                raise BrokerError(
                    ErrorCode.INVALID_REQUEST, f'setting "{config.name}" has no value'
                )
            overrides[config.name] = config.value
        return state.topics.altered(topic.name, overrides)

    answers = yield from _alter_each(state, request, alter)
    return follow(answers, lambda responses: AlterConfigsResponse(responses=responses))


def incremental_alter_configs(
    state: BrokerState, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> Parts[IncrementalAlterConfigsResponse | Pending[IncrementalAlterConfigsResponse]]:
    """Set, remove or extend single settings of topics."""

    def alter(resource: IncrementalAlterConfigsRequestAlterConfigsResource) -> Topic:
        topic = _altered_topic(state, resource)
        overrides = dict(topic.overrides)
        for config in resource.configs:
            _change_setting(overrides, topic, config)
        return state.topics.altered(topic.name, overrides)

    answers = yield from _alter_each(state, request, alter)
    return follow(answers, lambda responses: IncrementalAlterConfigsResponse(responses=responses))


def _alter_each(
    state: BrokerState,
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    alter: Callable[..., Topic],
) -> Parts[Responses | Pending[Responses]]:
    """Alter some topics at a time, with one write of the catalog for all of them."""
    resources: Sequence[Alteration] = request.resources
    often = Counter((one.resource_type, one.resource_name) for one in resources)
    answers = []
    for some in batched(resources, TOPICS_AT_ONCE_MAX):
        responses = []
        altered: dict[str, Topic | None] = {}
        for resource in some:
            response = AlterConfigsResourceResponse(
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            try:
                if often[resource.resource_type, resource.resource_name] > 1:
                    raise BrokerError(ErrorCode.INVALID_REQUEST, "the resource is listed twice")
                topic = alter(resource)
                if not request.validate_only:
                    altered[topic.name] = topic
            except REFUSED as error:
                response.error_code = error_code_of(error)
                response.error_message = error.message
            responses.append(response)
        pending = state.topics.stage(altered) if altered else Outcome()
        answers.append(follow(pending, partial(_written, responses)))
        yield
    return follow(gather(answers), lambda done: [one for some in done for one in some])


def _written(responses: Responses, outcome: Outcome) -> Responses:
    error = outcome.error
    for response in responses:
        if error is not None and not response.error_code:
            response.error_code = error_code_of(error)
            response.error_message = error.message
    return responses


def _altered_topic(state: BrokerState, resource: Alteration) -> Topic:
    names = Counter(config.name for config in resource.configs)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f'setting "{repeated[0]}" is listed twice')
    if resource.resource_type == BROKER:
        _check_broker(state, resource.resource_name)
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"settings of the broker cannot be changed while it runs: {', '.join(names)}",
        )
    if resource.resource_type != TOPIC:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"settings of resource type {resource.resource_type} cannot be changed",
        )
    _known_topic(state, resource.resource_name)
    # Including staged changes that are not on disk yet.
    topic = state.topics.wanted(resource.resource_name)
    if topic is None:
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f'topic "{resource.resource_name}" is being deleted',
        )
    return topic


def _change_setting(
    overrides: dict[str, str], topic: Topic, config: IncrementalAlterConfigsRequestAlterableConfig
) -> None:
    if config.config_operation == DELETE:
        overrides.pop(config.name, None)
        return
    if config.value is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f'setting "{config.name}" has no value')
    if config.config_operation == SET:
        overrides[config.name] = config.value
    elif config.config_operation in (APPEND, SUBTRACT):
        overrides[config.name] = ",".join(_change_list(topic, overrides, config))
    else:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"operation {config.config_operation} is not known"
        )


def _change_list(
    topic: Topic, overrides: dict[str, str], config: IncrementalAlterConfigsRequestAlterableConfig
) -> list[str]:
    known = settings(TopicConfig).get(config.name)
    if known is None or known.kind is not tuple:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f'setting "{config.name}" is not a list: it can only be set'
        )
    inherited = ",".join(getattr(topic.config, config.name.replace(".", "_")))
    parts = _parts(overrides.get(config.name, inherited))
    changed = _parts(config.value or "")
    if config.config_operation == APPEND:
        return parts + [part for part in changed if part not in parts]
    return [part for part in parts if part not in changed]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def list_config_resources(
    state: BrokerState, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """The resources with settings: topics and the broker. Version 0 lists client metrics: none."""
    if context.version < RESOURCE_TYPES_VERSION_MIN:
        return ListConfigResourcesResponse()
    wanted = set(request.resource_types) or {TOPIC, BROKER, *WITHOUT_SETTINGS}
    if wanted - {TOPIC, BROKER, *WITHOUT_SETTINGS}:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found = []
    if TOPIC in wanted:
        found += [ConfigResource(name, TOPIC) for name in state.topics.names()]
    if BROKER in wanted:
        found.append(ConfigResource(str(state.node_id), BROKER))
    return ListConfigResourcesResponse(config_resources=found)


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
}
