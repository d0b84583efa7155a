"""Stages: how they travel, and that the source runs them where it reads."""

import base64
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'millstream[spark]'")

from broker.errors import ConfigError
from sql.backends.spark.offsets import Span
from sql.backends.spark.source import BoundedReader, Spans
from sql.backends.spark.stages import of_option, to_option
from tests.sql.backends.spark.cluster import create, fill, reading


@dataclass(frozen=True)
class Doubled:
    """Twice the numbers of records, of those that are large enough."""

    least: int

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            found = [int(each) for each in batch.column("value").to_pylist()]
            yield pa.record_batch({"twice": [2 * each for each in found if each >= self.least]})


def test_a_stage_travels_as_an_option() -> None:
    assert of_option(to_option(Doubled(3))) == Doubled(3)


@pytest.mark.parametrize(
    "text",
    [
        "not base64",
        "AAAA",
        base64.b64encode(b"cno_module\nthing\n.").decode(),
        to_option(Doubled(1))[:8],
    ],
)
def test_what_is_no_stage_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match='"stage" cannot be read'):
        of_option(text)


def test_pickles_of_stages_are_small() -> None:
    assert len(pickle.dumps(Doubled(1))) < 200


@pytest.mark.slow
def test_the_source_gives_what_the_stage_makes_of_its_records(servers: str) -> None:
    topic = create(servers, "staged", 1)
    fill(servers, topic, range(6))
    options = replace(reading(servers, topic), stage=to_option(Doubled(4)))
    batches = BoundedReader(options).read(Spans([Span(topic, 0, 0, 6)]))
    assert [row["twice"] for batch in batches for row in batch.to_pylist()] == [8, 10]
