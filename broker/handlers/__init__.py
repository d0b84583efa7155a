"""Handlers: one function per API, from request message to response message."""

from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.handlers.table import HANDLERS, PREPARATIONS, VERSIONS, refusal

__all__ = [
    "HANDLERS",
    "PREPARATIONS",
    "VERSIONS",
    "BrokerState",
    "Handler",
    "RequestContext",
    "refusal",
]
