"""Job: the description of a query for workers; it is sent as text."""

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
    """A query as data, which does not depend on the process that created it."""

    application_id: str
    plan: dict[str, object]  # from plan_to_json
    partition_counts: Mapping[str, int]  # of all topics that the query reads or writes
    settings: Mapping[str, object] = field(default_factory=dict)
    registry_url: str | None = None
    function_modules: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Encode as text."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Decode from text; SqlError if it is invalid."""
        try:
            found = json.loads(text)
            found["function_modules"] = tuple(found["function_modules"])
            return cls(**found)
        except (ValueError, TypeError, KeyError) as error:
            raise SqlError(f"a job cannot be read: {error!r}") from error


def packed(jobs: Iterable[Job]) -> bytes:
    """Compressed jobs for workers: Spark cannot start stateful operators with large data."""
    texts = {job.application_id: job.to_text() for job in jobs}
    return zlib.compress(json.dumps(texts).encode())


@lru_cache(maxsize=PACKED_KEPT_MAX)
def unpacked(jobs: bytes) -> dict[str, str]:
    """The JSON of jobs, by the ids of their applications."""
    texts: dict[str, str] = json.loads(zlib.decompress(jobs))
    return texts
