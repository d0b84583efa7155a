"""Which machine a client runs on: that of its target."""

import socket
from random import Random

from broker.broker import Broker
from broker.client.config import NetworkConfig
from broker.client.connection import KEEPALIVE, Connection
from broker.client.opening import open_cluster
from broker.client.remote import Remote, machine_of, servers_of
from broker.client.shared_clients import SharedClients
from broker.clock import ManualClock, SystemClock
from broker.machine import Machine
from broker.sockets import SystemSockets


class OtherClock(SystemClock):
    """A clock that is not the system's."""


def test_clients_of_a_remote_run_on_its_machine() -> None:
    machine = Machine(clock=OtherClock(), random=Random(1))
    remote = Remote("127.0.0.1:1", machine)
    assert machine_of(remote) is machine
    assert (servers_of(remote), str(remote)) == ("127.0.0.1:1", "127.0.0.1:1")
    cluster = open_cluster(remote, {})
    assert cluster.clock is machine.clock
    assert cluster.random is machine.random
    cluster.close()


def test_shared_clients_of_a_remote_run_on_its_machine() -> None:
    machine = Machine(clock=OtherClock(), random=Random(1))
    shared = SharedClients(Remote("127.0.0.1:1", machine))
    assert shared.machine.clock is shared.transports.machine.clock is machine.clock
    cluster = open_cluster(shared, {})
    assert (cluster.clock, cluster.random) == (machine.clock, machine.random)
    cluster.close()
    shared.close()


def test_clients_of_an_embedded_broker_run_on_its_machine() -> None:
    machine = Machine(clock=OtherClock(), random=Random(1))
    assert machine_of(Broker(machine=machine)) is machine
    assert servers_of(Broker()) is None


def test_clients_never_wait_by_a_manual_clock_unless_it_is_given_to_them() -> None:
    clock = ManualClock()
    broker = Broker(clock=clock)
    assert isinstance(machine_of(broker).clock, SystemClock)
    assert machine_of(broker, clock).clock is clock


def test_connections_of_a_client_are_kept_alive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = ("127.0.0.1", listening.getsockname()[1])
        connection = Connection(address, NetworkConfig("ignored:1"), None, SystemSockets())
        assert connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle_s = connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        assert idle_s == KEEPALIVE["TCP_KEEPIDLE"]
        connection.close()


def test_a_string_means_this_machine() -> None:
    assert machine_of("127.0.0.1:1").clock.now_ms() > 0
    assert servers_of("127.0.0.1:1") == "127.0.0.1:1"
