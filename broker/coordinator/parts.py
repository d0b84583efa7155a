"""Work in parts: a large request is processed in steps, with other requests in between.

`Broker.handle` runs a function that yields, and releases the broker's lock periodically where it
yields; the state may have changed when the function resumes. So no request holds the lock for long,
whatever its size.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Parts: TypeAlias = Generator[None, None, T]


def each(items: Iterable[T], work: Callable[[T], R]) -> Parts[list[R]]:
    """Apply `work` to each item."""
    done = []
    for item in items:
        done.append(work(item))
        yield
    return done


def finish(parts: Parts[T]) -> T:
    """Run all parts without a pause."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            result: T = end.value
            return result


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
