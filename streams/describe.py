"""The text of a topology, exactly as Kafka Streams writes it.

Nodes are ordered by the number of nodes below them, then by name; stores and topics have the
order of a Java HashSet, so that descriptions can be compared with those of Kafka Streams.
"""

from collections.abc import Iterable
from functools import cmp_to_key
from typing import NamedTuple


class DescribedNode(NamedTuple):
    """A node; `detail` is the text in parentheses, for example "topics: [clicks]"."""

    name: str
    kind: str  # "Source", "Processor" or "Sink"
    detail: str
    parents: tuple[str, ...] = ()


def describe_nodes(nodes: Iterable[DescribedNode]) -> str:
    """Describe the nodes of one sub-topology."""
    return _NodeDescriber(nodes).text()


def listed(names: Iterable[str]) -> str:
    """Format names in brackets."""
    return "[" + ", ".join(java_set_order(names)) + "]"


class _NodeDescriber:
    """Nodes with their neighbours, in Kafka Streams' order."""

    def __init__(self, nodes: Iterable[DescribedNode]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._sizes = dict.fromkeys(self._nodes, 1)
        self._above: dict[str, list[str]] = {name: [] for name in self._nodes}
        self._below: dict[str, list[str]] = {name: [] for name in self._nodes}
        for name in java_set_order(self._nodes):
            for parent in dict.fromkeys(self._nodes[name].parents):
                self._insert(self._above[name], parent)
                self._insert(self._below[parent], name)
                self._grow(parent, self._sizes[name])

    def text(self) -> str:
        ordered = sorted(self._nodes, key=cmp_to_key(self._compare))
        return "".join(f"    {self._node_text(self._nodes[name])}\n" for name in ordered)

    def _compare(self, one: str, other: str) -> int:
        if self._sizes[one] != self._sizes[other]:
            return self._sizes[other] - self._sizes[one]
        return (one > other) - (one < other)

    def _insert(self, ordered: list[str], name: str) -> None:
        """Insert by the current sizes, which may still grow, as in Kafka Streams."""
        low, high = 0, len(ordered)
        while low < high:
            middle = (low + high) // 2
            if self._compare(name, ordered[middle]) < 0:
                high = middle
            else:
                low = middle + 1
        ordered.insert(low, name)

    def _grow(self, name: str, delta: int) -> None:
        self._sizes[name] += delta
        for parent in self._above[name]:
            self._grow(parent, delta)

    def _node_text(self, node: DescribedNode) -> str:
        text = f"{node.kind}: {node.name} ({node.detail})"
        if node.kind != "Sink":
            text += "\n      --> " + (", ".join(self._below[node.name]) or "none")
        if node.kind != "Source":
            text += "\n      <-- " + (", ".join(self._above[node.name]) or "none")
        return text


def java_set_order(names: Iterable[str]) -> list[str]:
    """Names in the iteration order of a Java HashSet."""
    distinct = list(dict.fromkeys(names))
    buckets = 16
    while len(distinct) > buckets * 3 // 4:
        buckets *= 2
    return sorted(distinct, key=lambda name: _java_spread_hash(name) & (buckets - 1))


def _java_spread_hash(name: str) -> int:
    value = 0
    units = name.encode("utf-16-be")
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    return value ^ (value >> 16)
