"""Stages: processing of records in the process that reads them.

    our source         records -> stage -> Spark: one process of Python, and only results travel
    Spark's connector  records -> Spark -> stage in mapInArrow -> Spark

A stage is data, which is pickled for workers; the objects that it needs are created there.
"""

import base64
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from broker.errors import ConfigError

# Batches are pyarrow.RecordBatch, frames and schemas Spark's: Any, they have no type hints.


class Stage(Protocol):
    """Processes batches of records, which have the columns of records.py."""

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Batches with the columns of the stage's schema."""
        ...


@dataclass(frozen=True, slots=True)
class Staged:
    """A stage, and the columns of its results: a Spark schema, or its text."""

    stage: Stage
    schema: Any

    def applied(self, records: Any) -> Any:
        """A frame of records after the stage."""
        return records.mapInArrow(self.stage.run, self.schema)


def to_option(stage: Stage) -> str:
    """The stage as an option of the source."""
    return base64.b64encode(pickle.dumps(stage)).decode()


def of_option(text: str) -> Stage:
    """The stage in an option; a user who can set it can run any code in the driver anyway."""
    try:
        stage: Stage = pickle.loads(base64.b64decode(text, validate=True))
    except (ValueError, pickle.UnpicklingError, AttributeError, ImportError, EOFError) as error:
        raise ConfigError(
            f'"stage" cannot be read: {error}',
            hint="do not set it: Millstream's queries do; workers must have the same version",
        ) from error
    return stage
