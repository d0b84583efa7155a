"""SharedRuntime: threads and clients that many applications of one process share.

Pass it to StreamsApp as the broker. The runners of all applications share a few threads, their
clients share threads and connections, and a topic that several applications read is fetched once.
Each application still has its own group, commits and transactions: if one fails or is slow, the
work of the others is not undone. A processor that waits, for example for an external service,
blocks one of the shared threads.
"""

from broker.client.opening import Target
from broker.client.shared_clients import SharedClients
from broker.client.shared_threads import SharedThreads
from broker.clock import Clock

# Only one runs Python code at a time; others wait for the disk, acknowledgements or coordinators.
RUNNER_THREADS = 4


class SharedRuntime:
    """The threads and clients; close the applications first, then this."""

    def __init__(
        self,
        broker: Target,
        *,
        threads: int = RUNNER_THREADS,
        clock: Clock | None = None,
    ) -> None:
        self._owns_clients = not isinstance(broker, SharedClients)
        self.clients = broker if isinstance(broker, SharedClients) else SharedClients(broker, clock)
        self.runner_threads = SharedThreads("shared-runner", threads, clock)

    def close(self) -> None:
        """Stop the threads."""
        self.runner_threads.close()
        if self._owns_clients:
            self.clients.close()
