"""Counts of started connectors and tasks."""

from dataclasses import dataclass

from connect.state.task_state import StatusListener


@dataclass(slots=True)
class StartupCounts:
    """Counts of started connectors, or of tasks."""

    attempts: int = 0
    successes: int = 0
    failures: int = 0

    def values(self, what: str) -> dict[str, float]:
        """The metrics by Kafka's names."""
        ended = self.successes + self.failures
        return {
            f"{what}-startup-attempts-total": self.attempts,
            f"{what}-startup-success-total": self.successes,
            f"{what}-startup-success-percentage": self.successes / ended if ended else 0.0,
            f"{what}-startup-failure-total": self.failures,
            f"{what}-startup-failure-percentage": self.failures / ended if ended else 0.0,
        }


@dataclass(slots=True)
class CountedStart:
    """A StatusListener that counts successful and failed starts, and notifies another listener."""

    listener: StatusListener
    counts: StartupCounts
    started: bool = False

    def on_startup(self) -> None:
        """Count a successful start."""
        self.started = True
        self.counts.successes += 1
        self.listener.on_startup()

    def on_running(self) -> None:
        self.listener.on_running()

    def on_paused(self) -> None:
        self.listener.on_paused()

    def on_stopped(self) -> None:
        self.listener.on_stopped()

    def on_failure(self, trace: str) -> None:
        """Count a failed start, if it had not started."""
        if not self.started:
            self.counts.failures += 1
        self.listener.on_failure(trace)

    def on_shutdown(self) -> None:
        self.listener.on_shutdown()
