"""Counts the functions that a workload calls, in Python and in C, in all threads.

PYTHONPATH=CHECKOUT python -P benchmarks/trees/counted_app.py WORKLOAD RECORDS ROUNDS

Prints the number of calls per record. It hardly depends on other load: the number of polls and of
records per batch changes it by a few per cent.
"""

import runpy
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

STEADY_APP = Path(__file__).with_name("steady_app.py")
COUNTED = frozenset({"call", "c_call"})


class CallCounter:
    """Counts calls between `start` and `stop`; single increments may be lost between threads."""

    def __init__(self) -> None:
        self.calls = 0
        self._is_counting = False
        threading.setprofile(self._count)
        sys.setprofile(self._count)

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        if self._is_counting and event in COUNTED:
            self.calls += 1

    def rounds(self, number: int) -> Iterator[str]:
        """Input lines for the workload: a round that is not counted, then `number` counted ones."""
        yield "\n"
        self._is_counting = True
        for _ in range(number):
            yield "\n"
        self._is_counting = False


def main(workload: str, records: str, rounds: str) -> None:
    """Run the workload, and print the calls per record."""
    counter = CallCounter()
    results, sys.stdout = sys.stdout, sys.stderr  # the workload prints its processor time
    sys.stdin = counter.rounds(int(rounds))  # it only iterates
    sys.argv = [str(STEADY_APP), workload, records]
    runpy.run_path(str(STEADY_APP), run_name="__main__")
    print(counter.calls / int(records) / int(rounds), file=results)


if __name__ == "__main__":
    main(*sys.argv[1:])
