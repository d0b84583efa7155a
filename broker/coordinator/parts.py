"""Work in parts: a request that asks for much is answered bit by bit, with others in between.

A function that yields is run by `Broker.handle`, which releases the broker's lock now and then
where it yields; what it knew before may have changed when it resumes. So no request holds the lock
for long, whatever its size.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Parts: TypeAlias = Generator[None, None, T]


def each(items: Iterable[T], work: Callable[[T], R]) -> Parts[list[R]]:
    """What the work makes of each item."""
    done = []
    for item in items:
        done.append(work(item))
        yield
    return done


def finish(parts: Parts[T]) -> T:
    """Do all parts at once."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            result: T = end.value
            return result


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in runs of at most so many."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
