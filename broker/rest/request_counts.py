"""RequestCounts: the number of requests, by method, path and status."""

from collections import Counter

from broker.exposition import Exposition

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
OTHER_METHOD = "other"
UNKNOWN_PATH = "unknown"


class RequestCounts:
    """Counters of one service."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def add(self, method: str, path: str, status: int) -> None:
        """Count one response; `path` is the path of its route."""
        self._counts[method if method in METHODS else OTHER_METHOD, path, status] += 1

    def expose(self, out: Exposition, name: str) -> None:
        """Add the metric family to a page of metrics."""
        out.family(name, "counter", "Requests answered.")
        counts = dict(self._counts)  # a copy: requests are counted meanwhile
        for (method, path, status), count in sorted(counts.items()):
            out.sample(name, count, method=method, path=path, status=status)
