"""An application in a process of its own, for tests that kill it; it ends when its input does."""

import sys

from streams.app import StreamsApp
from tests.streams.runtime.apps import count_topology, repartitioned_count_topology

TOPOLOGIES = {"plain": count_topology, "repartitioned": repartitioned_count_topology}


def main(bootstrap: str, state_dir: str, guarantee: str, topology: str = "plain") -> None:
    """Count until standard input is closed."""
    app = StreamsApp(
        TOPOLOGIES[topology](),
        application_id="counting",
        broker=bootstrap,
        state_dir=state_dir,
        processing_guarantee=guarantee,
        commit_interval_ms=20,
        heartbeat_interval_ms=100,
        session_timeout_ms=600_000,  # nobody waits for the session of one that was killed to end
    )
    with app:
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
