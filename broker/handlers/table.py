"""The table of handlers: which function answers which API."""

from collections.abc import Callable
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
# Refused, so that a client set up for authentication hears why; therefore not announced.
HANDLERS.update(sasl.HANDLERS)

REFUSALS: dict[ApiKey, Refusal] = {
    **produce.REFUSALS,
    **transactions.REFUSALS,
}


def refusal(api_key: ApiKey, request: object, code: ErrorCode) -> object | None:
    """A response that says the whole request failed; None if the API has no place to say so."""
    if api_key in REFUSALS:
        return REFUSALS[api_key](request, code)
    response = RESPONSES[api_key]()
    if not hasattr(response, "error_code"):
        return None
    response.error_code = code
    return response
