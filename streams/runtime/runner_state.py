"""The states of a runner, and what to do when it fails.

STARTING --> REBALANCING <--> RUNNING --> STOPPING --> DEAD
"""

from enum import Enum

from streams.errors import StreamsError


class RunnerState(Enum):
    """The state of a runner; see the diagram above."""

    STARTING = "starting"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    STOPPING = "stopping"
    DEAD = "dead"


class OnFailure(Enum):
    """What to do when a runner has failed."""

    REPLACE_RUNNER = "replace the runner"
    SHUTDOWN_CLIENT = "stop this instance"
    SHUTDOWN_APPLICATION = "stop all instances"


class ShutdownRequested(StreamsError):
    """An instance of the application requested that all instances stop."""
