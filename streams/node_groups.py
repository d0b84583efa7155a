"""NodeGroups: the sub-topologies of nodes, and their numbers, as in Kafka Streams."""

from collections.abc import Iterator


class NodeGroups:
    """Groups of nodes, connected by edges and shared stores; numbered in the order of adding."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def add(self, name: str) -> None:
        """Add a node, in a group of its own."""
        self._parent[name] = name

    def unite(self, one: str, other: str) -> None:
        """Merge the groups of two nodes."""
        self._parent[self._root(one)] = self._root(other)

    def number(self, name: str) -> int:
        """The number of a node's group."""
        return next(number for number, members in self.numbered() if name in members)

    def numbered(self) -> Iterator[tuple[int, frozenset[str]]]:
        """All groups, by number."""
        members: dict[str, set[str]] = {}
        for name in self._parent:
            members.setdefault(self._root(name), set()).add(name)
        for number, group in enumerate(members.values()):
            yield number, frozenset(group)

    def _root(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name
