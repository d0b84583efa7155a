"""Functions that take lambdas: FILTER, TRANSFORM and REDUCE of arrays and maps."""

from collections.abc import Callable
from typing import Any

from sql.functions.registry import Family

lambdas = Family("LAMBDA")

# Any: the types of elements, keys and values depend on the call.
Elements = list[Any]
Entries = dict[Any, Any]
Lambda = Callable[..., Any]


@lambdas.scalar(
    "filter(array ARRAY<T>, condition LAMBDA<T, BOOLEAN>) -> ARRAY<T>",
    "The elements or entries for which a lambda is true.",
)
def filter_array(array: Elements, condition: Lambda) -> Elements:
    return [each for each in array if condition(each)]


@lambdas.scalar("filter(map MAP<K, V>, condition LAMBDA<K, V, BOOLEAN>) -> MAP<K, V>")
def filter_map(entries: Entries, condition: Lambda) -> Entries:
    return {key: value for key, value in entries.items() if condition(key, value)}


@lambdas.scalar(
    "transform(array ARRAY<T>, change LAMBDA<T, R>) -> ARRAY<R>",
    "Applies a lambda to each element of an array, or two lambdas to each entry of a map.",
)
def transform_array(array: Elements, change: Lambda) -> Elements:
    return [change(each) for each in array]


@lambdas.scalar("transform(map MAP<K, V>, key LAMBDA<K, V, R>, value LAMBDA<K, V, T>) -> MAP<R, T>")
def transform_map(entries: Entries, change_key: Lambda, change_value: Lambda) -> Entries:
    """Two entries must not get the same key."""
    result = {change_key(key, value): change_value(key, value) for key, value in entries.items()}
    if len(result) < len(entries):
        raise ValueError("TRANSFORM returned the same key for two entries")
    return result


@lambdas.scalar(
    "reduce(array ARRAY<T>, start S, step LAMBDA<S, T, S>) -> S",
    "Reduces elements or entries to one value: a lambda computes the next state from the last one.",
    nulls=True,
)
def reduce_array(array: Elements | None, state: object, step: Lambda) -> object:
    """A null array gives the start; a null start gives null."""
    if state is None or array is None:
        return state
    for each in array:
        state = step(state, each)
    return state


@lambdas.scalar("reduce(map MAP<K, V>, start S, step LAMBDA<S, K, V, S>) -> S", nulls=True)
def reduce_map(entries: Entries | None, state: object, step: Lambda) -> object:
    """A null map gives the start; a null start gives null."""
    if state is None or entries is None:
        return state
    for key, value in entries.items():
        state = step(state, key, value)
    return state
