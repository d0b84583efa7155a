"""The message table: every supported request and response, by API."""

from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import (
    configs,
    consumer_groups,
    fetch,
    groups,
    metadata,
    offsets,
    produce,
    sasl,
    topics,
    transactions,
)
from broker.protocol.wire import SPECS

__all__ = [
    "REQUESTS",
    "RESPONSES",
    "configs",
    "consumer_groups",
    "fetch",
    "groups",
    "metadata",
    "offsets",
    "produce",
    "sasl",
    "topics",
    "transactions",
]

REQUESTS: dict[ApiKey, type[object]] = {
    spec.api_key: cls for cls, spec in SPECS.items() if spec.api_key is not None and spec.is_request
}
RESPONSES: dict[ApiKey, type[object]] = {
    spec.api_key: cls
    for cls, spec in SPECS.items()
    if spec.api_key is not None and not spec.is_request
}
