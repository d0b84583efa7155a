"""A regular expression that tries many ways: one statement does not silence the process."""

import time
from pathlib import Path

import pytest

from broker.broker import Broker
from tests.sql.engine.engines import engine_of, rows

# Backtracking takes twice as long with each letter: most of a minute for these.
LETTERS = "a" * 28 + "!"
CPU_SECONDS_MAX = 10.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        "REGEXP_EXTRACT('(a+)+$', word)",
        "REGEXP_EXTRACT_ALL('(a+)+$', word)",
        "REGEXP_REPLACE(word, '(a+)+$', 'b')",
        "REGEXP_SPLIT_TO_ARRAY(word, '(a+)+$')",
    ],
)
def test_a_select_with_a_pattern_that_backtracks_leaves_time_for_others(
    broker: Broker, tmp_path: Path, call: str
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(
            "CREATE STREAM words (word STRING)"
            " WITH (kafka_topic='words', value_format='JSON', partitions=1);"
            f" INSERT INTO words VALUES ('{LETTERS}');"
        )
        started = time.process_time()
        found = rows(engine, f"SELECT {call} AS found FROM words EMIT CHANGES LIMIT 1;")
        assert time.process_time() - started < CPU_SECONDS_MAX
    assert found in ([(None,)], [([],)], [(LETTERS,)], [([LETTERS],)])


@pytest.mark.slow
def test_a_pattern_that_only_backtracking_can_evaluate_ends_with_its_time_limit(
    broker: Broker, tmp_path: Path
) -> None:
    # A group that is repeated later cannot be found in linear time.
    with engine_of(broker, tmp_path) as engine:
        engine.execute(
            "CREATE STREAM words (word STRING)"
            " WITH (kafka_topic='words', value_format='JSON', partitions=1);"
            f" INSERT INTO words VALUES ('{LETTERS}');"
        )
        started = time.process_time()
        found = rows(
            engine,
            r"SELECT word, REGEXP_EXTRACT('(a+)+\1$', word) AS found FROM words"
            " EMIT CHANGES LIMIT 1;",
        )
        assert time.process_time() - started < CPU_SECONDS_MAX
    assert found == [(LETTERS, None)]
