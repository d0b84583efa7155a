"""Threads that serve all queries outlive an error that nobody expected."""

import threading
from typing import cast

from broker.clock import ManualClock
from sql.engine.commands import Commands
from sql.engine.follower import Follower
from sql.queries import Supervisor
from tests.support.peer import wait_until

SECONDS_MAX = 20.0
LONG_MS = 3_600_000  # whatever is waited for, it has passed


class Once:
    """Raises when it is called first."""

    def __init__(self) -> None:
        self.calls = 0

    def follow(self) -> None:
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError("nobody expected this")


def test_other_queries_are_looked_after_when_one_action_raises() -> None:
    supervisor = Supervisor(ManualClock())
    other = threading.Event()
    supervisor.after(0, Once().follow)
    supervisor.after(0, other.set)
    assert other.wait(SECONDS_MAX), "the supervisor has ended"
    supervisor.close()


def test_commands_of_other_servers_are_followed_after_an_error() -> None:
    clock, commands = ManualClock(), Once()
    follower = Follower(cast(Commands, commands), clock)
    follower.start()

    def followed_again() -> bool:
        clock.advance(LONG_MS)
        return commands.calls > 1

    wait_until(followed_again, "the next look at the log")
    follower.close()
