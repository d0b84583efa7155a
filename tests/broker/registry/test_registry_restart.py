"""A registry of many schemas starts quickly, parses none of them, and stays small."""

import pytest

import broker.registry.schema_parser
from benchmarks.formats.registry_restart import measure_restart

BYTES_MAX = 3_000  # of memory for each schema, of which its text is 200


@pytest.mark.slow
@pytest.mark.parametrize("many", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_schemas_are_loaded_without_parsing_one(
    monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a schema was parsed")

    monkeypatch.setattr(broker.registry.schema_parser, "parse_schema", refuse)
    restart = measure_restart(many, memory=True)
    assert restart.schemas == many
    assert restart.memory_bytes < many * BYTES_MAX
