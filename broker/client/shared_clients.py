"""SharedClients: a way to a broker for many clients of one process, which share what they can.

Given to `consumer`, `producer` and `admin` in place of a broker: their heartbeats and sends come
from a few threads, their requests go through one, and a partition that many read is read once.
"""

from broker.client.embedded import RequestHandler
from broker.client.remote import Remote, machine_of
from broker.client.shared_threads import ClientThreads
from broker.client.sharing import SharedTransports
from broker.clock import Clock


class SharedClients:
    """Close the clients first, then this."""

    def __init__(
        self, target: RequestHandler | str | Remote | SharedTransports, clock: Clock | None = None
    ) -> None:
        """Nothing is opened before the first client."""
        self.target = target
        self.transports = (
            target
            if isinstance(target, SharedTransports)
            else SharedTransports(target, clock=clock)
        )
        self.machine = machine_of(self.transports, clock)
        self.threads = ClientThreads(self.machine.clock)

    def close(self) -> None:
        """Stop the threads."""
        self.threads.close()
        self.transports.close()
