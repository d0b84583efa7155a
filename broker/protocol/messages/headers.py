"""The header of requests."""

from broker.protocol import wire


@wire.data("1-2", flexible=2)
class RequestHeader:
    """RequestHeader."""

    request_api_key: int = wire.int16()
    request_api_version: int = wire.int16()
    correlation_id: int = wire.int32()
    client_id: str | None = wire.string("1+", nullable="1+", compact=False)
