"""SharedRuntime: what many applications of one process share instead of each having its own.

Given to StreamsApp as its broker. The runners of all applications share a few threads,
their clients share threads and connections' I/O, and a topic that many read is read once. Each
application is still a group of its own, with its own commits and transactions: one that fails or
is slow does not undo the work of others. A processor that waits for something outside keeps a
thread from the others.
"""

from broker.client.opening import Target
from broker.client.shared_clients import SharedClients
from broker.client.shared_threads import SharedThreads
from broker.clock import Clock

# One at a time computes, for Python; the others wait for disk, acknowledgements or coordinators.
RUNNER_THREADS = 4


class SharedRuntime:
    """Close the applications first, then this."""

    def __init__(
        self,
        broker: Target,
        *,
        threads: int = RUNNER_THREADS,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is opened before the first application starts."""
        self._owns_clients = not isinstance(broker, SharedClients)
        self.clients = broker if isinstance(broker, SharedClients) else SharedClients(broker, clock)
        self.runner_threads = SharedThreads("shared-runner", threads, clock)

    def close(self) -> None:
        """Stop the threads."""
        self.runner_threads.close()
        if self._owns_clients:
            self.clients.close()
