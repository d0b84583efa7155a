"""A registry of many schemas starts quickly, parses none of them, and stays small."""

import os

import pytest

import broker.registry.schema_parser
from benchmarks.registry_restart import measure_restart

MANY = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 5_000
BYTES_MAX = 3_000  # of memory for each schema, of which its text is 200


@pytest.mark.slow
def test_many_schemas_are_loaded_without_parsing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a schema was parsed")

    monkeypatch.setattr(broker.registry.schema_parser, "parse_schema", refuse)
    restart = measure_restart(MANY, memory=True)
    assert restart.schemas == MANY
    assert restart.memory_bytes < MANY * BYTES_MAX
