"""Results of cases, as text and as JSON."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """The result of a case."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case, and the reason."""

    id: str
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The results of a run."""

    results: tuple[CaseResult, ...]

    def count(self, status: Status) -> int:
        """The number of cases with a status."""
        return sum(each.status is status for each in self.results)

    @property
    def succeeded(self) -> bool:
        """Whether no case failed."""
        return self.count(Status.FAILED) == 0

    def as_json(self) -> str:
        """One object: counts, and all cases."""
        return json.dumps(
            {
                **{status.value: self.count(status) for status in Status},
                "total": len(self.results),
                "cases": [
                    {"id": each.id, "status": each.status.value, "reason": each.reason}
                    for each in self.results
                ],
            },
            ensure_ascii=False,
        )

    def lines(self) -> Iterable[str]:
        """Each case that did not pass, then a summary."""
        for each in self.results:
            if each.status is not Status.PASSED:
                yield f"{each.status.value:12}{each.id}\n            {each.reason}"
        counts = Counter(each.status for each in self.results)
        shown = ", ".join(f"{counts[status]} {status.value}" for status in Status)
        yield f"{len(self.results)} cases: {shown}"
