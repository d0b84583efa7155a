"""SharedClients: clients of one process that share threads, connections and reads.

`consumer`, `producer` and `admin` accept it in place of a broker: a few threads send the heartbeats
and records of all clients, one does their I/O, and a partition with many readers is read once.
"""

from broker.client.embedded import RequestHandler
from broker.client.remote import Remote, machine_of
from broker.client.shared_threads import ClientThreads
from broker.client.sharing import SharedTransports
from broker.clock import Clock


class SharedClients:
    """Close the clients before this."""

    def __init__(
        self, target: RequestHandler | str | Remote | SharedTransports, clock: Clock | None = None
    ) -> None:
        """The first client starts the threads."""
        self.target = target
        self.transports = (
            target
            if isinstance(target, SharedTransports)
            else SharedTransports(target, clock=clock)
        )
        self.machine = machine_of(self.transports, clock)
        self.threads = ClientThreads(self.machine.clock)

    def close(self) -> None:
        self.threads.close()
        self.transports.close()
