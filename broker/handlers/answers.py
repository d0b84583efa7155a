"""Responses composed of results that are available now or later."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from broker.pending import Pending

T = TypeVar("T")
R = TypeVar("R")


def follow(answer: T | Pending[T], step: Callable[[T], R | Pending[R]]) -> R | Pending[R]:
    """Apply a step to a result: now, or when the result and that of the step are available."""
    if not isinstance(answer, Pending):
        return step(answer)
    pending: Pending[R] = Pending()

    def go_on(value: T) -> None:
        made = step(value)
        if isinstance(made, Pending):
            made.then(partial(_complete, pending))
        else:
            pending.complete(made)

    answer.then(go_on)
    return pending


def gather(answers: Sequence[T | Pending[T]]) -> list[T] | Pending[list[T]]:
    """All results in their order, when the last one is available."""
    values: dict[int, T] = {}
    pending: Pending[list[T]] = Pending()

    def take(index: int, value: T) -> None:
        values[index] = value
        if len(values) == len(answers):
            pending.complete(in_order())

    def in_order() -> list[T]:
        return [values[index] for index in range(len(answers))]

    for index, answer in enumerate(answers):
        if isinstance(answer, Pending):
            answer.then(partial(take, index))
        else:
            take(index, answer)
    return in_order() if len(values) == len(answers) else pending


def _complete(pending: Pending[R], value: R) -> None:
    pending.complete(value)
