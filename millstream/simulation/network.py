"""SimulatedNetwork: connections between simulated processes, and their faults.

    network = SimulatedNetwork(simulation)
    network.serve(process, broker, "broker:9092")       # in a thread of the broker's process
    network.sockets(other)                              # the sockets of another process
    network.partition("broker", "reader")               # ... until network.heal()

The network survives processes.
"""

import errno
import itertools
from selectors import EVENT_READ
from typing import cast

from broker import concurrency
from broker.broker import Broker
from broker.config import BrokerConfig
from broker.server.connections import BACKGROUND_THREADS, Connections
from broker.sockets import Address, Socket
from millstream.simulation.event_loop import SimulatedLoop
from millstream.simulation.links import Link
from millstream.simulation.network_conditions import NetworkConditions
from millstream.simulation.scheduler import Process, Scheduler
from millstream.simulation.simulation import Simulation
from millstream.simulation.sockets import Selectable, SimulatedSocket, SimulatedSockets

LISTENER = "PLAINTEXT"
SHUTDOWN_GRACE_SECONDS = 1.0
ALL_PROCESSES = ""


class Listener(Selectable):
    """A socket that accepts connections."""

    def __init__(self, number: int, process: Process, scheduler: Scheduler) -> None:
        super().__init__(number)
        self.process = process
        self._scheduler = scheduler
        self._waiting: list[tuple[int, SimulatedSocket]] = []

    @property
    def is_open(self) -> bool:
        """Whether connections are accepted."""
        return not self.is_closed and self.process.is_alive

    def put(self, socket: SimulatedSocket, at_us: int) -> None:
        """Add a connection that arrives at a time."""
        self._waiting.append((at_us, socket))
        self.changed(at_us)

    def accept(self) -> list[SimulatedSocket]:
        """The connections that have arrived."""
        now_us = self._scheduler.now_us
        arrived = [socket for at_us, socket in self._waiting if at_us <= now_us]
        self._waiting = [each for each in self._waiting if each[0] > now_us]
        return arrived

    def ready(self, events: int, now_us: int) -> int:
        """Whether connections have arrived."""
        return EVENT_READ if any(at_us <= now_us for at_us, _ in self._waiting) else 0

    def next_us(self) -> int | None:
        """When the next connection arrives."""
        return min((at_us for at_us, _ in self._waiting), default=None)

    def close(self) -> None:
        """Accept no more connections; close waiting ones."""
        self.is_closed = True
        if self.selector is not None:
            self.selector.remove(self)
        for _, socket in self._waiting:
            socket.close()


class SimulatedNetwork:
    """All connections of a simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self.scheduler = simulation.scheduler
        self.conditions = NetworkConditions(simulation.scheduler, simulation.random("network"))
        self.history = simulation.history
        self._random = self.conditions.random
        self._numbers = itertools.count(3)
        self._listeners: dict[Address, Listener] = {}
        self._links: list[Link] = []
        self._known: dict[Process, None] = {}

    # --- processes ------------------------------------------------------------------------------

    def sockets(self, process: Process) -> SimulatedSockets:
        """Create the sockets of a process; its machine has power again."""
        self._join(process)
        return SimulatedSockets(process, self, self._numbers)

    def serve(self, process: Process, broker: Broker, address: str) -> "SimulatedServer":
        """Serve a started broker at "host:port", in a thread of its process."""
        self._join(process)
        host, _, port = address.rpartition(":")
        key = (host, int(port))
        assert key not in self._listeners or not self._listeners[key].is_open, "in use"
        listener = Listener(next(self._numbers), process, self.scheduler)
        self._listeners[key] = listener
        broker.advertise(LISTENER, host, int(port))
        server = SimulatedServer(broker, listener, self.scheduler)
        self.scheduler.spawn(process, "broker-server", server.run)
        return server

    def _join(self, process: Process) -> None:
        if process in self._known:
            return
        self._known[process] = None
        process.on_kill.append(lambda: self._killed(process))
        if self.conditions.without_power.pop(process.name, process) is None:
            self._release()

    def _killed(self, process: Process) -> None:
        """Close the sockets of a killed process, unless its machine has lost power."""
        self._known.pop(process, None)
        has_no_power = process.name in self.conditions.without_power
        for link in self._open_links():
            if process in link.processes:
                if has_no_power:
                    link.vanish()
                else:
                    link.end_of(process)

    def lose_power(self, process: Process) -> None:
        """Called before a process is killed because its machine loses power: no end is notified.

        The machine has power again when a process of the same name creates sockets.
        """
        self.conditions.without_power[process.name] = None

    # --- connecting -----------------------------------------------------------------------------

    def connect(self, socket: SimulatedSocket, address: Address) -> None:
        """Start to connect."""
        conditions, now_us = self.conditions, self.scheduler.now_us
        listener = self._listeners.get(address)
        if listener is None or (
            not listener.is_open and listener.process.name not in conditions.without_power
        ):
            socket.connect_error = errno.ECONNREFUSED
            socket.connected_us = now_us + self._random.randint(50, 5_000)
            socket.changed(socket.connected_us)
            return
        if conditions.is_unreachable(socket.process, listener.process):
            if self._random.random() < 0.5:  # otherwise there is no response at all
                socket.connect_error = errno.EHOSTUNREACH
                socket.connected_us = now_us + conditions.connect_timeout_us()
                socket.changed(socket.connected_us)
            return
        accepted = SimulatedSocket(next(self._numbers), listener.process, self)
        accepted.is_connected = True
        self._links = self._open_links()
        self._links.append(Link(conditions, socket, accepted))
        arrives_us = now_us + conditions.delay_us(socket.process, listener.process)
        listener.put(accepted, arrives_us)
        socket.connected_us = arrives_us + conditions.delay_us(socket.process, listener.process)
        socket.changed(socket.connected_us)

    def _open_links(self) -> list[Link]:
        return [link for link in self._links if not link.is_over]

    # --- faults ---------------------------------------------------------------------------------

    def disconnect_some(self, share: float = 0.5, *, among: str = ALL_PROCESSES) -> int:
        """Break some connections now, possibly only those of one process; returns how many."""
        count = 0
        for link in self._open_links():
            if self._touches(link, among) and self._random.random() < share:
                link.cut()
                count += 1
        self.history.add("network", "breaks", count, "connections", among)
        return count

    def keep_disconnecting(self, chance: float) -> None:
        """From now on break a connection with this chance whenever bytes are sent."""
        self.history.add("network", "breaks connections with chance", chance)
        self.conditions.cut_chance = chance

    def partition(self, one: str, other: str = ALL_PROCESSES) -> None:
        """Partition two processes, or one from all others.

        Connections between them hold their bytes until the partition ends, or are lost.
        """
        self.history.add("network", "parts", one, "from", other or "everybody")
        self.conditions.partitions[one, other] = None
        for link in self._open_links():
            if self.conditions.is_partitioned(*link.processes):
                if self._random.random() < 0.5:
                    link.hold()
                else:
                    link.vanish()

    def slow_down(self, factor: float, *, of: str = ALL_PROCESSES) -> None:
        """Multiply the delay of messages, possibly only those of one process."""
        self.history.add("network", "is slower by", factor, of)
        self.conditions.slow_factor[of] = factor

    def heal(self) -> None:
        """End all faults; held bytes arrive."""
        self.history.add("network", "heals")
        self.conditions.cut_chance = 0.0
        self.conditions.slow_factor.clear()
        self.conditions.partitions.clear()
        self._release()

    def _release(self) -> None:
        for link in self._open_links():
            if not self.conditions.is_unreachable(*link.processes):
                link.release()

    def _touches(self, link: Link, name: str) -> bool:
        return name == ALL_PROCESSES or name in [process.name for process in link.processes]


class SimulatedServer:
    """Serves a broker over simulated sockets, with the code for real ones."""

    def __init__(self, broker: Broker, listener: Listener, scheduler: Scheduler) -> None:
        self._broker = broker
        self._listener = listener
        self._scheduler = scheduler
        self._loop = SimulatedLoop(scheduler)
        self._connections: Connections | None = None
        self._ended: concurrency.Event | None = None

    def run(self) -> None:
        """Serve until `close`; in a thread of the broker's process."""
        scheduler = self._scheduler
        self._ended = concurrency.Event()
        background = concurrency.ThreadPoolExecutor(BACKGROUND_THREADS, "large-requests")
        config: BrokerConfig = self._broker.config
        self._connections = Connections(
            self._broker,
            config,
            self._loop,
            background,
            now_ns=lambda: scheduler.now_us * 1_000,
        )
        self._loop.add_reader(cast(Socket, self._listener), self._accept)
        self._loop.call_soon(self._connections.close_idle)
        self._loop.run()
        self._connections.close()
        background.shutdown(wait=False)
        self._ended.set()

    def _accept(self) -> None:
        assert self._connections is not None
        for socket in self._listener.accept():
            client = cast(Link, socket.link).client.process.name
            self._connections.admit(socket, client, LISTENER)

    def close(self) -> None:
        """Finish requests in flight and close all connections; for other threads of the process."""
        self._loop.call_soon_threadsafe(self._shut_down)
        if self._ended is not None:
            self._ended.wait()

    def _shut_down(self) -> None:
        assert self._connections is not None
        self._loop.remove_reader(cast(Socket, self._listener))
        self._listener.close()
        self._connections.close_when_sent()
        self._stop_when_sent(self._scheduler.now_us + int(SHUTDOWN_GRACE_SECONDS * 1_000_000))

    def _stop_when_sent(self, deadline_us: int) -> None:
        if self._connections and self._scheduler.now_us < deadline_us:
            self._loop.call_later(0.01, self._stop_when_sent, deadline_us)
        else:
            self._loop.stop()
