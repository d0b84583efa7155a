"""Simulated sockets: what a program sees of a network that is slow, full, parted or broken."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE
from socket import SO_ERROR, SO_KEEPALIVE, SOL_SOCKET
from typing import cast

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.machine import Machine
from broker.protocol.frame import encode_request
from broker.protocol.messages.metadata import ApiVersionsRequest
from broker.sockets import Socket
from millstream.simulation import Simulation
from millstream.simulation.clock import VirtualClock
from millstream.simulation.network import SimulatedNetwork
from millstream.simulation.scheduler import Process

ADDRESS = ("broker", 9092)
HELLO = b"".join(
    cast(bytes, part)
    for part in encode_request(
        ApiVersionsRequest("tests", "1"), 3, correlation_id=1, client_id="tests"
    )
)


class World:
    """A broker, and one program that uses sockets."""

    def __init__(self, simulation: Simulation, folder: Path) -> None:
        self.simulation = simulation
        self.network = SimulatedNetwork(simulation)
        self.clock = VirtualClock(simulation.scheduler)
        self.folder = folder
        self.server = simulation.process("broker")
        self.client = simulation.process("client")
        self.failed: list[BaseException] = []

    def serve(self, process: Process) -> None:
        def main() -> None:
            broker = Broker(BrokerConfig(), clock=self.clock, data_directory=str(self.folder))
            self.network.serve(process, broker.start(), "broker:9092")

        self.simulation.start(process, "main", main)
        self.simulation.run(for_ms=100)

    def run(self, body: Callable[[], object], *, for_ms: int = 600_000) -> None:
        task = self.simulation.start(self.client, "main", body)
        self.simulation.run(for_ms=for_ms)
        assert [error for _, error in self.simulation.scheduler.crashed] == []
        assert task.is_over, "the program still waits"

    def now_ms(self) -> int:
        return self.simulation.scheduler.now_us // 1_000

    def open(self) -> Socket:
        socket = self.network.sockets(self.client).open(2)
        socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            socket.connect(ADDRESS)
        return socket

    def wait(self, socket: Socket, events: int, timeout_ms: int = 60_000) -> int:
        selector = self.network.sockets(self.client).selector()
        selector.register(socket, events)
        found = selector.select(timeout_ms / 1000)
        selector.close()
        return found[0][1] if found else 0

    def connected(self) -> Socket:
        socket = self.open()
        assert self.wait(socket, EVENT_WRITE) == EVENT_WRITE
        assert socket.getsockopt(SOL_SOCKET, SO_ERROR) == 0
        return socket

    def receive(self, socket: Socket, timeout_ms: int = 60_000) -> bytes:
        if not self.wait(socket, EVENT_READ, timeout_ms):
            return b"nothing"
        return socket.recv(65_536)


@contextmanager
def served(seed: int, folder: Path) -> Iterator[World]:
    with Simulation(seed) as simulation:
        world = World(simulation, folder)
        world.serve(world.server)
        yield world


def test_an_answer_arrives_in_time_and_in_pieces(tmp_path: Path) -> None:
    sizes = set()
    for seed in range(30):
        with served(seed, tmp_path / str(seed)) as world:

            def ask(world: World = world) -> None:
                socket = world.connected()
                started_ms = world.now_ms()
                assert socket.send(HELLO[:10]) == 10
                assert socket.send(HELLO[10:]) == len(HELLO) - 10
                sizes.add(len(world.receive(socket)))
                assert world.now_ms() - started_ms <= 3_000

            world.run(ask)
    assert len(sizes) > 1, "sometimes only a piece has arrived"


def test_a_connection_is_refused_when_nobody_serves(tmp_path: Path) -> None:
    with Simulation(1) as simulation:
        world = World(simulation, tmp_path)

        def ask() -> None:
            socket = world.open()
            assert world.wait(socket, EVENT_WRITE)
            assert socket.getsockopt(SOL_SOCKET, SO_ERROR) == errno.ECONNREFUSED

        world.run(ask)


def test_a_buffer_that_is_full_takes_no_more_bytes(tmp_path: Path) -> None:
    with served(1, tmp_path) as world:

        def ask() -> None:
            socket = world.connected()
            world.network.partition("broker")
            taken = 0
            while world.wait(socket, EVENT_WRITE, timeout_ms=1_000):
                taken += socket.send(bytes(100_000))
            with pytest.raises(BlockingIOError):
                socket.send(b"one more")
            assert taken % 4_096 == 0

        world.run(ask)


@pytest.mark.parametrize("seed", range(8))
def test_bytes_wait_for_the_end_of_a_partition_or_the_connection_is_lost(
    seed: int, tmp_path: Path
) -> None:
    with served(seed, tmp_path) as world:

        def ask() -> None:
            socket = world.connected()
            world.network.partition("client", "broker")
            assert socket.send(HELLO) == len(HELLO)
            assert world.receive(socket, timeout_ms=20_000) == b"nothing"
            world.network.heal()
            try:
                assert len(world.receive(socket)) > 0
                outcomes.append("answer")
            except ConnectionResetError:
                outcomes.append("reset")

        outcomes: list[str] = []
        world.run(ask)
        assert outcomes in (["answer"], ["reset"])


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_process_closes_its_connections(seed: int, tmp_path: Path) -> None:
    with served(seed, tmp_path) as world:

        def ask() -> None:
            socket = world.connected()
            world.simulation.kill(world.server)
            try:
                assert world.receive(socket) == b""
            except ConnectionResetError:
                return
            socket.send(HELLO)
            with pytest.raises(ConnectionResetError):  # noqa: PT012 - the last of many
                for _ in range(100):
                    world.receive(socket)
                    world.simulation.scheduler.sleep(100_000)
            with pytest.raises(BrokenPipeError):
                socket.send(HELLO)

        world.run(ask)


@pytest.mark.parametrize("seed", range(8))
def test_a_machine_without_power_says_nothing_until_it_is_back(seed: int, tmp_path: Path) -> None:
    with served(seed, tmp_path) as world:

        def ask() -> None:
            socket = world.connected()
            patient = world.connected()
            patient.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
            world.network.lose_power(world.server)
            world.simulation.kill(world.server)
            socket.send(HELLO)
            assert world.receive(socket, timeout_ms=300_000) == b"nothing"
            other = world.open()
            assert world.wait(other, EVENT_WRITE, timeout_ms=20_000) == 0 or other.getsockopt(
                SOL_SOCKET, SO_ERROR
            )
            world.network.sockets(world.simulation.process("broker"))
            with pytest.raises(ConnectionResetError):
                world.receive(socket)

        world.run(ask)


def test_a_silent_peer_is_given_up_by_sockets_that_ask_whether_it_is_there(tmp_path: Path) -> None:
    with served(1, tmp_path) as world:

        def ask() -> None:
            socket = world.connected()
            other = world.connected()
            other.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
            world.network.lose_power(world.server)
            world.simulation.kill(world.server)
            with pytest.raises(ConnectionResetError):
                world.receive(other, timeout_ms=3 * 3_600_000)
            assert world.receive(socket, timeout_ms=1_000) == b"nothing"

        world.run(ask, for_ms=4 * 3_600_000)


def test_a_machine_has_sockets_of_its_own() -> None:
    left, right = Machine().sockets.pair()
    left.send(b"x")
    assert right.recv(10) == b"x"
    left.close()
    right.close()
