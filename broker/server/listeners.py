"""Listeners: the addresses to listen on, and those that clients receive."""

import socket
from dataclasses import dataclass

from broker.config import CONTROLLER, BrokerConfig
from broker.errors import ConfigError

SECURE_PROTOCOLS = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})
PORT_MAX = 65535
ANY_HOST = frozenset({"", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A named listener with its address."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        """host:port, as clients receive it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def listen_endpoints(config: BrokerConfig) -> list[Endpoint]:
    """The addresses to listen on; TLS and SASL are refused, since they are not supported."""
    endpoints = _parse_all(config.listeners, "listeners")
    endpoints = [endpoint for endpoint in endpoints if endpoint.name != CONTROLLER]
    if not endpoints:
        raise ConfigError('setting "listeners" names no address to listen on')
    return endpoints


def advertised_endpoints(config: BrokerConfig) -> dict[str, Endpoint]:
    """The advertised addresses of listeners that have one."""
    endpoints = _parse_all(config.advertised_listeners, "advertised.listeners")
    listening = {endpoint.name for endpoint in listen_endpoints(config)}
    for endpoint in endpoints:
        if endpoint.name not in listening and endpoint.name != CONTROLLER:
            raise ConfigError(
                f'setting "advertised.listeners" names "{endpoint.name}", which is not one '
                "of the listeners",
                hint=f"listeners are {', '.join(sorted(listening))}",
            )
        if endpoint.host in ANY_HOST:
            raise ConfigError(
                f'setting "advertised.listeners" has no host for "{endpoint.name}"',
                hint="give the name or address under which clients reach the broker",
            )
    return {endpoint.name: endpoint for endpoint in endpoints}


def advertise(
    listening: Endpoint, advertised: dict[str, Endpoint], bound_port: int
) -> tuple[str, int]:
    """Host and port for clients of a listener: port 0 and an empty host are replaced."""
    told = advertised.get(listening.name, listening)
    host = _reachable_host() if told.host in ANY_HOST else told.host
    return host, told.port or bound_port


def _reachable_host() -> str:
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


def _parse_all(texts: tuple[str, ...], setting: str) -> list[Endpoint]:
    endpoints = [_parse(text, setting) for text in texts]
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f'setting "{setting}" has listener "{name}" twice')
        if name in SECURE_PROTOCOLS:
            raise ConfigError(
                f'setting "{setting}" asks for {name}, which this broker does not support',
                hint="listen on PLAINTEXT and put a TLS proxy in front",
            )
    return endpoints


def _parse(text: str, setting: str) -> Endpoint:
    name, separator, address = text.partition("://")
    host, colon, port_text = address.rpartition(":")
    if not separator or not colon or not name or not port_text.isdecimal():
        raise ConfigError(
            f'setting "{setting}" has "{text}", which is not a listener',
            hint="a listener is written NAME://host:port",
        )
    port = int(port_text)
    if port > PORT_MAX:
        raise ConfigError(f'setting "{setting}" has port {port}, which is above {PORT_MAX}')
    return Endpoint(name.upper(), host.removeprefix("[").removesuffix("]"), port)
