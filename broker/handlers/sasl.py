"""SaslHandshake and SaslAuthenticate: refused, since listeners are plain text."""

from broker.errors import ErrorCode
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


def sasl_handshake(
    state: BrokerState, request: SaslHandshakeRequest, context: RequestContext
) -> SaslHandshakeResponse:
    """No mechanism is supported."""
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(
    state: BrokerState, request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    """Refuse SASL: clients do not authenticate here."""
    return SaslAuthenticateResponse(
        ErrorCode.ILLEGAL_SASL_STATE, "this listener is plain text: clients do not authenticate"
    )


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.SASL_HANDSHAKE: sasl_handshake,
    ApiKey.SASL_AUTHENTICATE: sasl_authenticate,
}
