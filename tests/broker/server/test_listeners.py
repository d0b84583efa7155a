"""Where to listen, and what clients are told."""

import pytest

from broker.config import BrokerConfig
from broker.errors import ConfigError
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.server.listeners import Endpoint, advertise, advertised_endpoints, listen_endpoints
from tests.broker.server.conftest import StartServer
from tests.support.raw_client import RawClient


def test_listeners_have_names_hosts_and_ports() -> None:
    config = BrokerConfig(
        listeners=("PLAINTEXT://:9092", "INSIDE://[::1]:0", "CONTROLLER://localhost:9093")
    )
    assert listen_endpoints(config) == [
        Endpoint("PLAINTEXT", "", 9092),
        Endpoint("INSIDE", "::1", 0),
    ]
    assert str(Endpoint("INSIDE", "::1", 5)) == "[::1]:5"


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        (("localhost:9092",), "not a listener"),
        (("PLAINTEXT://localhost",), "not a listener"),
        (("PLAINTEXT://localhost:x",), "not a listener"),
        (("PLAINTEXT://localhost:70000",), "65535"),
        (("SSL://localhost:9092",), "SSL"),
        (("SASL_PLAINTEXT://localhost:9092",), "SASL"),
        (("PLAINTEXT://a:1", "PLAINTEXT://b:2"), "twice"),
        (("CONTROLLER://a:1",), "no address"),
        ((), "no address"),
    ],
)
def test_wrong_listeners_are_named(listeners: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        listen_endpoints(BrokerConfig(listeners=listeners))


@pytest.mark.parametrize(
    "advertised", [("OUTSIDE://example.org:1",), ("PLAINTEXT://:1",), ("PLAINTEXT://0.0.0.0:1",)]
)
def test_what_nobody_can_reach_is_not_advertised(advertised: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"advertised\.listeners"):
        advertised_endpoints(BrokerConfig(advertised_listeners=advertised))


def test_port_0_becomes_the_real_one() -> None:
    listening = Endpoint("PLAINTEXT", "127.0.0.1", 0)
    assert advertise(listening, {}, 4711) == ("127.0.0.1", 4711)
    outside = {"PLAINTEXT": Endpoint("PLAINTEXT", "example.org", 9092)}
    assert advertise(listening, outside, 4711) == ("example.org", 9092)
    host, port = advertise(Endpoint("PLAINTEXT", "", 9092), {}, 9092)
    assert host
    assert port == 9092


def test_clients_are_told_the_address_of_the_listener_they_came_by(
    start_server: StartServer,
) -> None:
    server = start_server(
        listeners=("INSIDE://127.0.0.1:0", "OUTSIDE://127.0.0.1:0"),
        advertised_listeners=("OUTSIDE://example.org:1234",),
    )
    told = []
    for endpoint in server.endpoints:
        with RawClient(str(endpoint)) as client:
            (broker,) = client.ask(MetadataRequest(None), MetadataResponse).brokers
            told.append((broker.host, broker.port))
    assert told == [("127.0.0.1", server.endpoints[0].port), ("example.org", 1234)]


def test_without_a_host_every_address_is_listened_on(start_server: StartServer) -> None:
    server = start_server(listeners=("PLAINTEXT://:0",))
    with RawClient(f"127.0.0.1:{server.endpoints[0].port}") as client:
        client.ask(MetadataRequest(None), MetadataResponse)
    assert server.bootstrap.startswith("0.0.0.0:")
