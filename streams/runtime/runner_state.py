"""Where a runner stands, and what becomes of it when it fails.

STARTING --> REBALANCING <--> RUNNING --> STOPPING --> DEAD
"""

from enum import Enum

from streams.errors import StreamsError


class RunnerState(Enum):
    """Where a runner stands; drawn at the top."""

    STARTING = "starting"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    STOPPING = "stopping"
    DEAD = "dead"


class OnFailure(Enum):
    """What to do when a runner has died of an error."""

    REPLACE_RUNNER = "replace the runner"
    SHUTDOWN_CLIENT = "stop this instance"
    SHUTDOWN_APPLICATION = "stop all instances"


class ShutdownRequested(StreamsError):
    """An instance of the application asked all instances to stop."""
