"""Committed offsets; the coordinator does the work."""

from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import offsets as wire


def offset_commit(
    state: BrokerState, request: wire.OffsetCommitRequest, context: RequestContext
) -> wire.OffsetCommitResponse | Pending[wire.OffsetCommitResponse]:
    """A group commits offsets."""
    return state.groups.commit_offsets(request, context.version)


def offset_fetch(
    state: BrokerState, request: wire.OffsetFetchRequest, context: RequestContext
) -> wire.OffsetFetchResponse:
    """What groups have committed."""
    return state.groups.fetch_offsets(request, context.version)


def offset_delete(
    state: BrokerState, request: wire.OffsetDeleteRequest, context: RequestContext
) -> wire.OffsetDeleteResponse | Pending[wire.OffsetDeleteResponse]:
    """Forget committed offsets."""
    return state.groups.delete_offsets(request)


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.OFFSET_DELETE: offset_delete,
}
