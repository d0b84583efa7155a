"""FindCoordinator: the coordinator of a group or a transactional id, always this broker."""

from broker.coordinator.parts import Parts
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import GROUP_TOPIC, TRANSACTION_TOPIC
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.metadata import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

TOPIC_OF_KEY_TYPE = {0: GROUP_TOPIC, 1: TRANSACTION_TOPIC}
MANY_KEYS_VERSION_MIN = 4
NO_NODE = -1


def find_coordinator(
    state: BrokerState, request: FindCoordinatorRequest, context: RequestContext
) -> Parts[FindCoordinatorResponse]:
    """This broker, for every key; the first request creates the topic for the state."""
    many = context.version >= MANY_KEYS_VERSION_MIN
    keys = request.coordinator_keys if many else [request.key]
    host, port = state.endpoint_for(context.connection.listener)
    found = []
    for key in keys:
        try:
            _check_key_type(state, request.key_type)
        except BrokerError as error:
            found.append(Coordinator(key, NO_NODE, "", -1, error.code, error.message))
        except StorageError as error:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            found.append(Coordinator(key, NO_NODE, "", -1, code, error.message))
        else:
            found.append(Coordinator(key, state.node_id, host, port, ErrorCode.NONE, ""))
        yield
    if many:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or None,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _check_key_type(state: BrokerState, key_type: int) -> None:
    topic = TOPIC_OF_KEY_TYPE.get(key_type)
    if topic is None:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"coordinator key type {key_type} is not known"
        )
    state.topics.ensure_internal(topic)


def prepare(state: BrokerState, request: FindCoordinatorRequest, context: RequestContext) -> None:
    """Create the coordinator's topic before the lock is acquired: this waits for the disk."""
    topic = TOPIC_OF_KEY_TYPE.get(request.key_type)
    if topic is not None:
        state.topics.prepare_internal(topic)


PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.FIND_COORDINATOR: prepare}
HANDLERS: dict[ApiKey, Handler] = {ApiKey.FIND_COORDINATOR: find_coordinator}
