"""NodeGroups: which nodes run together, and the number of each group; as Kafka Streams counts."""

from collections.abc import Iterator


class NodeGroups:
    """Nodes united by edges and by stores that they share; numbered in the order of adding."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def add(self, name: str) -> None:
        """A node, in a group of its own."""
        self._parent[name] = name

    def unite(self, one: str, other: str) -> None:
        """Let the groups of two nodes be one."""
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
