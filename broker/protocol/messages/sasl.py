"""SASL authentication."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.request(ApiKey.SASL_HANDSHAKE, "0-1")
class SaslHandshakeRequest:
    """SaslHandshake request."""

    mechanism: str = wire.string()


@wire.response(ApiKey.SASL_HANDSHAKE, "0-1")
class SaslHandshakeResponse:
    """SaslHandshake response."""

    error_code: int = wire.int16()
    mechanisms: list[str] = wire.array("string")


@wire.request(ApiKey.SASL_AUTHENTICATE, "0-2", flexible=2)
class SaslAuthenticateRequest:
    """SaslAuthenticate request."""

    auth_bytes: bytes = wire.sized()


@wire.response(ApiKey.SASL_AUTHENTICATE, "0-2", flexible=2)
class SaslAuthenticateResponse:
    """SaslAuthenticate response."""

    error_code: int = wire.int16()
    error_message: str | None = wire.string(nullable="0+")
    auth_bytes: bytes = wire.sized()
    session_lifetime_ms: int = wire.int64("1+")
