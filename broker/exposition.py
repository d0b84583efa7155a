"""Exposition: metrics for Prometheus, written by prometheus_client.

Counters are plain attributes: a page is collected from them at each scrape, and only then the
library is imported, which takes longer than importing all of `streams`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Metric

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER = "counter"
TOTAL = "_total"


class _CounterWithoutTotal(str):
    """The type "counter" of a metric whose name does not end in _total.

    The library appends _total to the name of every metric whose type is equal to "counter".
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


class Exposition:
    """A collector of metric families with their samples, in the form of `prometheus_client`."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._families

    def family(self, name: str, kind: str, text: str) -> None:
        """Begin a metric family: `kind` is counter or gauge."""
        from prometheus_client import Metric

        family = Metric(name.removesuffix(TOTAL) if kind == COUNTER else name, text, kind)
        if kind == COUNTER and not name.endswith(TOTAL):
            family.type = _CounterWithoutTotal(kind)
        self._families[name] = family

    def sample(self, name: str, value: float, **labels: object) -> None:
        """Add a sample to a family."""
        shown = {label: str(text) for label, text in labels.items()}
        self._families[name].add_sample(name, shown, value)

    def single(self, name: str, kind: str, text: str, value: float) -> None:
        """Add a family with one sample without labels."""
        self.family(name, kind, text)
        self.sample(name, value)

    def add_page(self, page: str, **labels: str) -> None:
        """Add all samples of another page, with labels that identify their source."""
        from prometheus_client.parser import text_string_to_metric_families

        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name not in self:
                    self.family(sample.name, family.type, family.documentation)
                self.sample(sample.name, sample.value, **labels, **sample.labels)

    def collect(self) -> Iterable["Metric"]:
        """All metric families."""
        return self._families.values()

    def text(self) -> str:
        """The page."""
        from prometheus_client import generate_latest

        return generate_latest(self).decode()
