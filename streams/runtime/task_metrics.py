"""Counters of one task, by name and by node or store; the runtime exports them.

name                           counted at     level
process-total                  source, sink   INFO; every node at DEBUG
process-nanoseconds-total      task           INFO
dropped-records-total          task           INFO
enforced-processing-total      task           INFO
dead-letters-total             task           INFO
punctuate-total                task           INFO
commit-total                   task           INFO
"""

from collections.abc import Iterator

DROPPED = "dropped-records-total"
PROCESSED = "process-total"
PROCESS_NANOSECONDS = "process-nanoseconds-total"
ENFORCED = "enforced-processing-total"
DEAD_LETTERS = "dead-letters-total"
PUNCTUATED = "punctuate-total"
COMMITS = "commit-total"


class Counter:
    """A number that grows; the thread of the task writes it, any thread may read it."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int = 1) -> None:
        """Increase the value."""
        self.value += amount


class TaskMetrics:
    """All counters of a task."""

    __slots__ = ("_counters",)

    def __init__(self) -> None:
        self._counters: dict[tuple[str, str], Counter] = {}

    def counter(self, name: str, node: str = "") -> Counter:
        """The counter of a node or store, or of the task itself."""
        counter = self._counters.get((name, node))
        if counter is None:
            counter = self._counters[(name, node)] = Counter()
        return counter

    def total(self, name: str) -> int:
        """The sum of one counter over the task's nodes."""
        return sum(counter.value for (each, _), counter in self.copy_of_counters() if each == name)

    def items(self) -> Iterator[tuple[str, str, int]]:
        """Name, node and value of every counter."""
        for (name, node), counter in self.copy_of_counters():
            yield name, node, counter.value

    def copy_of_counters(self) -> list[tuple[tuple[str, str], Counter]]:
        """A copy of the counters: nodes may add some while other threads read."""
        return list(self._counters.items())
