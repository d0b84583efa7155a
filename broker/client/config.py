"""Settings of the clients: Kafka's names with underscores, Kafka's defaults."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import TypeVar, cast, get_args, get_origin

from broker.errors import ConfigError

T = TypeVar("T")

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ALL_REPLICAS = -1
IN_FLIGHT_MAX_IN_ORDER = 5
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The settings of connections to brokers."""

    bootstrap_servers: str
    client_id: str = "millstream"
    security_protocol: str = "PLAINTEXT"
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = None
    ssl_endpoint_identification_algorithm: str = "https"  # "": do not check the host name
    sasl_mechanism: str = "PLAIN"
    sasl_username: str = ""
    sasl_password: str = ""
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1000
    socket_connection_setup_timeout_ms: int = 10_000
    send_buffer_bytes: int = 131_072
    receive_buffer_bytes: int = -1  # of sockets; -1: the system decides
    receive_bytes_max: int = 256 * 1024 * 1024  # a longer response is invalid
    requests_in_flight_max: int = 100  # per connection, of any kind

    def __post_init__(self) -> None:
        parse_servers(self.bootstrap_servers)
        one_of("security_protocol", self.security_protocol, SECURITY_PROTOCOLS)
        one_of("sasl_mechanism", self.sasl_mechanism, ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
        one_of(
            "ssl_endpoint_identification_algorithm",
            self.ssl_endpoint_identification_algorithm,
            ("https", "", "none"),
        )
        at_least("reconnect_backoff_ms", self.reconnect_backoff_ms, 0)
        at_least("requests_in_flight_max", self.requests_in_flight_max, 1)
        at_least("receive_bytes_max", self.receive_bytes_max, 1024)
        if self.uses_sasl and not self.sasl_username:
            raise ConfigError(
                f'"security_protocol" {self.security_protocol} needs a "sasl_username"'
            )

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether connections authenticate."""
        return self.security_protocol.startswith("SASL")


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The settings of metadata and retries."""

    metadata_max_age_ms: int = 300_000
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    # How long to look for a first broker before that is an error; None: as long as the call lasts.
    # Once one has answered, calls outlast its restarts.
    bootstrap_timeout_ms: int | None = None
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1000
    allow_auto_create_topics: bool = True

    def __post_init__(self) -> None:
        for name in ("metadata_max_age_ms", "retry_backoff_ms", "retry_backoff_max_ms"):
            at_least(name, getattr(self, name), 0)
        for name in ("request_timeout_ms", "default_api_timeout_ms"):
            at_least(name, getattr(self, name), 1)
        if self.bootstrap_timeout_ms is not None:
            at_least("bootstrap_timeout_ms", self.bootstrap_timeout_ms, 1)


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """The settings of batches, requests and retries."""

    acks: str | int = "all"  # "all", -1, 0 or 1
    batch_size: int = 16_384
    linger_ms: int = 5
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    compression_type: str = "none"
    compression_level: int | None = None
    enable_idempotence: bool | None = None  # None: if acks allows it
    max_in_flight_requests_per_connection: int = 5
    retries: int = 2_147_483_647
    delivery_timeout_ms: int = 120_000
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        one_of("acks", self.acks, ("all", "-1", "0", "1", -1, 0, 1))
        one_of("compression_type", self.compression_type, COMPRESSIONS)
        for name in ("linger_ms", "max_block_ms", "retries", "batch_size"):
            at_least(name, getattr(self, name), 0)
        for name in (
            "buffer_memory",
            "max_request_size",
            "max_in_flight_requests_per_connection",
            "delivery_timeout_ms",
            "transaction_timeout_ms",
        ):
            at_least(name, getattr(self, name), 1)
        if self.idempotent:
            self._check_idempotence()

    def _check_idempotence(self) -> None:
        asked = "transactional_id" if self.transactional_id is not None else "enable_idempotence"
        if self.required_acks != ALL_REPLICAS:
            raise ConfigError(f'"{asked}" needs acks="all"', hint=f"acks is {self.acks!r}")
        if self.enable_idempotence is False:
            raise ConfigError('"transactional_id" needs enable_idempotence')
        if self.max_in_flight_requests_per_connection > IN_FLIGHT_MAX_IN_ORDER:
            raise ConfigError(
                f'"{asked}" needs max_in_flight_requests_per_connection <= '
                f"{IN_FLIGHT_MAX_IN_ORDER}",
                hint="brokers remember only that many batches per producer",
            )
        if self.retries == 0:
            raise ConfigError(f'"{asked}" needs retries > 0')

    @property
    def required_acks(self) -> int:
        """acks as in the protocol: -1 for all."""
        return ALL_REPLICAS if self.acks == "all" else int(self.acks)

    @property
    def idempotent(self) -> bool:
        """Whether batches have sequence numbers."""
        if self.transactional_id is not None or self.enable_idempotence is not None:
            return self.transactional_id is not None or bool(self.enable_idempotence)
        in_order = self.max_in_flight_requests_per_connection <= IN_FLIGHT_MAX_IN_ORDER
        return self.required_acks == ALL_REPLICAS and in_order and self.retries > 0


def parse_servers(text: str) -> list[tuple[str, int]]:
    """Parse "host:port,host:port"; IPv6 addresses are in brackets."""
    servers = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = part.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(
                f'bootstrap server "{part}" is not "host:port"',
                hint='use the form "host:port,host:port"',
            )
        servers.append((host.strip("[]"), int(port)))
    if not servers:
        raise ConfigError('"bootstrap_servers" is empty', hint='set it to "host:port"')
    return servers


def one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a value that is not allowed."""
    if value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise ConfigError(f'"{name}" is {value!r}', hint=f"it must be one of {choices}")


def at_least(name: str, value: int, least: int) -> None:
    """Refuse a value that is too small."""
    if value < least:
        raise ConfigError(f'"{name}" is {value}', hint=f"it must be at least {least}")


def take(cls: type[T], options: dict[str, object]) -> T:
    """Create a config from its options, and remove them from `options`."""
    types = {item.name: item.type for item in fields(cast("type[NetworkConfig]", cls))}
    found = {name: options.pop(name) for name in list(options) if name in types}
    return cls(**{name: _typed(name, value, types[name]) for name, value in found.items()})


def _typed(name: str, value: object, declared: object) -> object:
    """A value converted to the type of its setting; strings, from files and flags, are parsed."""
    kinds = set(get_args(declared) if isinstance(declared, UnionType) else (declared,))
    kinds.discard(NoneType)
    if str in kinds:
        if isinstance(value, bool | int | float) and type(value) not in kinds:
            # The value is not shown: it may be a password.
            raise ConfigError(
                f'"{name}" has a value of type {type(value).__name__}', hint="it must be a string"
            )
        return value
    if not isinstance(value, str):
        return value
    text = value.strip()
    if bool in kinds:
        one_of(name, text.lower(), ("true", "false"))
        return text.lower() == "true"
    if int in kinds:
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f'"{name}" is "{value}"', hint="it must be an integer") from None
    if get_origin(declared) is Sequence:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return value


def refuse_unknown(options: dict[str, object], *classes: type[object]) -> None:
    """Raise ConfigError for unknown options, and suggest similar names."""
    if not options:
        return
    known = [item.name for cls in classes for item in fields(cast("type[NetworkConfig]", cls))]
    name = sorted(options)[0]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"settings are {', '.join(sorted(known))}"
    raise ConfigError(f'unknown setting "{name}"', hint=hint)
