"""BranchedStream: splits a stream into branches."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from streams.dsl import names
from streams.dsl.logical import ProcessStep, StreamNode
from streams.dsl.stream import Stream, check_function
from streams.errors import TopologyError
from streams.operators.stateless import Branch, PassThrough, Predicate
from streams.where import user_line

K = TypeVar("K")
V = TypeVar("V")

# A function of a branch; the stream that it returns, if any, replaces the branch in the result.
Chain = Callable[[Stream[K, V]], "Stream[Any, Any] | None"]


class BranchedStream(Generic[K, V]):
    """Created by `split()`: add branches, then end with `default_branch` or `no_default_branch`.

    In the result, the name of a branch is the name of the split followed by the branch's own name,
    or by its number: 1, 2 and so on, 0 for the default branch.
    """

    def __init__(self, node: StreamNode, name: str | None) -> None:
        self._node = node
        self._predicates: list[Predicate] = []
        self._children: list[str] = []
        self._branches: dict[str, Stream[Any, Any]] = {}
        self._step = node.graph.add(
            ProcessStep(
                name=node.graph.names.node(name, names.BRANCH),
                parents=(node.step,),
                make=lambda: Branch(tuple(self._predicates), tuple(self._children)),
            )
        )

    def branch(
        self,
        predicate: Callable[[K, V], object],
        *,
        name: str | None = None,
        chain: Chain[K, V] | None = None,
    ) -> "BranchedStream[K, V]":
        """Add a branch for records that match no earlier branch.

        `chain` is called with the branch; the stream that it returns replaces the branch in the
        result. If it returns None, the branch is not in the result.
        """
        check_function(predicate, "predicate")
        self._check_open()
        self._predicates.append(cast(Predicate, predicate))
        self._add(name, len(self._predicates), chain)
        return self

    def default_branch(
        self, *, name: str | None = None, chain: Chain[K, V] | None = None
    ) -> dict[str, Stream[K, V]]:
        """Add a branch for all other records; returns all branches by name."""
        self._check_open()
        self._add(name, 0, chain)
        return self._branches

    def no_default_branch(self) -> dict[str, Stream[K, V]]:
        """Drop all other records; returns all branches by name."""
        return self._branches

    def _check_open(self) -> None:
        if len(self._children) > len(self._predicates):
            raise TopologyError(
                "the split already has a default branch",
                at=user_line(),
                hint="add branches before default_branch()",
            )

    def _add(self, name: str | None, number: int, chain: Chain[K, V] | None) -> None:
        graph, source = self._node.graph, self._node
        suffix = str(number) if name is None else name
        child = names.check_name(self._step.name + suffix)
        self._children.append(child)
        graph.names.new(child)
        step = graph.add(ProcessStep(name=child, parents=(self._step,), make=PassThrough))
        stream: Stream[K, V] = Stream(
            StreamNode(
                graph=graph,
                step=step,
                key_serde=source.key_serde,
                value_serde=source.value_serde,
                needs_repartition=source.needs_repartition,
            )
        )
        if chain is None:
            self._branches[child] = stream
            return
        chained = chain(stream)
        if chained is not None:
            self._branches[child] = chained
