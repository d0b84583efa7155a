"""Sends requests to the handlers of a broker, without the preparations before the lock."""

from types import GeneratorType

from broker.broker import Broker
from broker.coordinator.parts import finish
from broker.handlers import HANDLERS, RequestContext
from broker.model import ConnectionInfo
from broker.pending import Pending
from broker.protocol.wire import SPECS

CLIENT = ConnectionInfo(client_id="client", client_host="host")


def ask(broker: Broker, request: object, version: int) -> object:
    """The answer, or a Pending one."""
    api_key = SPECS[type(request)].api_key
    assert api_key is not None
    answer = HANDLERS[api_key](broker.state, request, RequestContext(version, CLIENT))
    return finish(answer) if isinstance(answer, GeneratorType) else answer


def now(answer: object) -> object:
    """The answer, which must be there."""
    if not isinstance(answer, Pending):
        return answer
    found: list[object] = []
    answer.then(found.append)
    assert found, "the response is not available yet"
    return found[0]
