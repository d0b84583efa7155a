"""Session: the requests that open a new connection, before all others.

    ApiVersions (highest, then v0)  ->  SaslHandshake  ->  SaslAuthenticate, as often as needed

It is a generator without I/O: it yields (request, version) and receives the response.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import cast

from broker.client.config import NetworkConfig
from broker.client.sasl import Conversation, converse
from broker.errors import AuthenticationFailed, BrokerError, ErrorCode, UnsupportedVersion
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from broker.protocol.wire import SPECS, Versions

SOFTWARE_NAME = "millstream"
SOFTWARE_VERSION = "0.1.0"
HANDSHAKE_VERSION = 1  # v0 sends tokens without frames


@dataclass(frozen=True, slots=True)
class Session:
    """The API versions of a broker, and the lifetime of the authentication (0: unlimited)."""

    versions: dict[int, Versions]
    lifetime_ms: int = 0

    def version(self, request: object, version_max: int | None = None) -> int:
        """The highest version of a request that both sides support."""
        spec = SPECS[type(request)]
        assert spec.api_key is not None, f"{type(request).__name__} is not a request"
        theirs = self.versions.get(spec.api_key)
        name = type(request).__name__
        if theirs is None:
            raise UnsupportedVersion(f"the broker does not support {name}")
        highest = min(theirs.last, spec.versions.last)
        if version_max is not None:
            highest = min(highest, version_max)
        if highest < max(theirs.first, spec.versions.first):
            raise UnsupportedVersion(
                f"the broker supports {name} versions {theirs.first} to {theirs.last}, this client "
                f"{spec.versions.first} to {min(spec.versions.last, version_max or 32767)}"
            )
        return highest


Opening = Generator[tuple[object, int], object, Session]


def open_session(
    config: NetworkConfig, *, talk: Callable[[str, str, str], Conversation] = converse
) -> Opening:
    """Negotiate versions, then authenticate if it is configured."""
    session = yield from _negotiate()
    if not config.uses_sasl:
        return session
    handshake = SaslHandshakeRequest(mechanism=config.sasl_mechanism)
    answer = cast(SaslHandshakeResponse, (yield handshake, HANDSHAKE_VERSION))
    if answer.error_code:
        raise AuthenticationFailed(
            f"the broker refused SASL mechanism {config.sasl_mechanism}: "
            f"{ErrorCode(answer.error_code).name}",
            hint=f"it offers {', '.join(answer.mechanisms) or 'none'}",
        )
    conversation = talk(config.sasl_mechanism, config.sasl_username, config.sasl_password)
    lifetime_ms = yield from _authenticate(conversation, session)
    return Session(session.versions, lifetime_ms)


def _negotiate() -> Opening:
    request = ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION)
    highest = SPECS[ApiVersionsRequest].versions.last
    response = cast(ApiVersionsResponse, (yield request, highest))
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        response = cast(ApiVersionsResponse, (yield request, 0))
    if response.error_code:
        raise BrokerError(
            ErrorCode(response.error_code), "the broker does not report its API versions"
        )
    return Session(
        {item.api_key: Versions(item.min_version, item.max_version) for item in response.api_keys}
    )


def _authenticate(
    conversation: Conversation, session: Session
) -> Generator[tuple[object, int], object, int]:
    lifetime_ms = 0
    try:
        token = next(conversation)
        while True:
            request = SaslAuthenticateRequest(auth_bytes=token)
            version = (
                session.version(request) if ApiKey.SASL_AUTHENTICATE in session.versions else 0
            )
            answer = cast(SaslAuthenticateResponse, (yield request, version))
            if answer.error_code:
                raise AuthenticationFailed(
                    answer.error_message or ErrorCode(answer.error_code).name,
                    hint="check sasl_username and sasl_password",
                )
            lifetime_ms = answer.session_lifetime_ms
            token = conversation.send(answer.auth_bytes)
    except StopIteration:
        return lifetime_ms
