"""Job: what a worker must know of a query to run its tasks; travels as text."""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Self

from sql.errors import SqlError

PACKED_KEPT_MAX = 16


@dataclass(frozen=True, slots=True)
class Job:
    """A query as data: nothing of it depends on the process that made it."""

    application_id: str
    plan: dict[str, object]  # as plan_to_json makes it
    partition_counts: Mapping[str, int]  # of all topics that the query reads or writes
    settings: Mapping[str, object] = field(default_factory=dict)
    registry_url: str | None = None
    function_modules: tuple[str, ...] = ()

    def to_text(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """From text; anything else is a SqlError."""
        try:
            found = json.loads(text)
            found["function_modules"] = tuple(found["function_modules"])
            return cls(**found)
        except (ValueError, TypeError, KeyError) as error:
            raise SqlError(f"a job cannot be read: {error!r}") from error


def packed(jobs: Iterable[Job]) -> bytes:
    """Jobs for workers, small: Spark cannot start stateful operators that carry a megabyte."""
    texts = {job.application_id: job.to_text() for job in jobs}
    return zlib.compress(json.dumps(texts).encode())


@lru_cache(maxsize=PACKED_KEPT_MAX)
def unpacked(jobs: bytes) -> dict[str, str]:
    """The JSON of jobs, by their applications' ids."""
    texts: dict[str, str] = json.loads(zlib.decompress(jobs))
    return texts
