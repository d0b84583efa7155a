"""The table of handlers: the function for each API."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from broker.errors import ErrorCode
from broker.handlers import (
    configs,
    consumer_groups,
    coordinators,
    fetch,
    groups,
    list_offsets,
    log_dirs,
    metadata,
    offsets,
    produce,
    replicas,
    sasl,
    topics,
    transactions,
)
from broker.handlers.state import Handler
from broker.handlers.versions import VersionTable
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import RESPONSES

# Any: each refusal takes the request class of its API.
Refusal = Callable[[Any, ErrorCode], object]

HANDLERS: dict[ApiKey, Handler] = {
    **produce.HANDLERS,
    **fetch.HANDLERS,
    **list_offsets.HANDLERS,
    **metadata.HANDLERS,
    **coordinators.HANDLERS,
    **topics.HANDLERS,
    **configs.HANDLERS,
    **log_dirs.HANDLERS,
    **replicas.HANDLERS,
    **groups.HANDLERS,
    **consumer_groups.HANDLERS,
    **offsets.HANDLERS,
    **transactions.HANDLERS,
}

VERSIONS = VersionTable({*HANDLERS, ApiKey.API_VERSIONS})
HANDLERS[ApiKey.API_VERSIONS] = VERSIONS.api_versions
# Refused, so that a client with authentication gets the reason; therefore not announced.
HANDLERS.update(sasl.HANDLERS)

# Work before the lock is acquired, by API: reads the catalog, creates internal topics.
PREPARATIONS: dict[ApiKey, Handler] = {
    **produce.PREPARATIONS,
    **fetch.PREPARATIONS,
    **coordinators.PREPARATIONS,
    **groups.PREPARATIONS,
    **consumer_groups.PREPARATIONS,
    **offsets.PREPARATIONS,
    **transactions.PREPARATIONS,
}

REFUSALS: dict[ApiKey, Refusal] = {
    **produce.REFUSALS,
    **transactions.REFUSALS,
}


def refusal(api_key: ApiKey, version: int, request: object, code: ErrorCode) -> object | None:
    """A response that fails the whole request; None if the version has no field for that."""
    if api_key in REFUSALS:
        return REFUSALS[api_key](request, code)
    kind: Any = RESPONSES[api_key]
    if not any(
        each.name == "error_code" and version in each.metadata["wire"].versions
        for each in fields(kind)
    ):
        return None
    response: object = kind(error_code=code)
    return response
