"""Examples run, and say what their files say."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from examples import (
    clickstream_enrichment,
    consumer_group,
    embedded_broker,
    exactly_once,
    fraud_detection,
    interactive_queries,
    raw_batches,
    run_my_connector,
    session_analysis,
    simulated_crashes,
    stock_statistics,
    table_joins,
    typed_orders,
    word_count,
)
from examples.spark_pipeline import __main__ as spark_pipeline
from examples.spark_pipeline.results import differences
from tests.support.spark import MASTER, shared_session

EXAMPLES = Path(embedded_broker.__file__).parent


@pytest.mark.slow
def test_the_embedded_broker_gives_back_the_orders() -> None:
    assert sorted(embedded_broker.main()) == ["alice 12", "alice 30", "bob 7"]


@pytest.mark.slow
def test_exactly_once_shouts_every_word_once() -> None:
    assert exactly_once.main() == ["MILL", "STREAM", "WATER"]


@pytest.mark.slow
def test_a_connector_of_ones_own_goes_on_after_a_restart() -> None:
    assert run_my_connector.main() == list(range(1, 11))


@pytest.mark.slow
def test_raw_batches_copies_all_records() -> None:
    batches, records = raw_batches.main()
    assert records == raw_batches.RECORDS
    assert 0 < batches < records


@pytest.mark.slow
def test_the_group_shares_and_takes_over() -> None:
    together, alone = consumer_group.main()
    assert sorted(number for share in together for number in share) == [0, 1, 2, 3]
    assert alone == [[0, 1, 2, 3]]


@pytest.mark.slow
def test_words_are_counted() -> None:
    counts = word_count.main()
    assert (counts["the"], counts["mill"], counts["stream"], counts["by"]) == (4, 3, 3, 1)
    assert sum(counts.values()) == 14


@pytest.mark.slow
def test_stock_statistics_cover_the_last_five_seconds_every_second() -> None:
    found = stock_statistics.main()
    assert {symbol for symbol, _ in found} == {"MILL"}
    assert [row["from_s"] for _, row in found] == list(range(15))
    assert found[3][1] == {"from_s": 3, "lowest": 106, "count": 10, "average": 110.5}


@pytest.mark.slow
def test_views_get_profiles_and_the_searches_before_them() -> None:
    assert sorted(clickstream_enrichment.main()) == [
        ("alice", {"page": "/wheels", "name": "Alice", "searched": "water wheel"}),
        ("bob", {"page": "/shop", "name": "anonymous", "searched": "flour"}),
    ]


@pytest.mark.slow
def test_a_card_that_travels_too_fast_raises_an_alarm() -> None:
    assert fraud_detection.main() == [("1111", {"countries": ["FR", "JP", "US"]})]


@pytest.mark.slow
def test_joined_tables_follow_a_new_price() -> None:
    assert table_joins.main() == {
        "flour": {"price": 3, "sacks": 70},
        "order-1": {"product": "flour", "pays": 9},
        "order-2": {"product": "bran", "pays": 1},
    }


@pytest.mark.slow
def test_visits_are_reported_when_they_are_over() -> None:
    assert sorted(session_analysis.main(), key=str) == [
        ("alice", {"pages": 1, "minutes": 0}),
        ("alice", {"pages": 3, "minutes": 25}),
        ("bob", {"pages": 1, "minutes": 0}),
    ]


@pytest.mark.slow
def test_orders_become_bills_whose_schema_is_registered() -> None:
    bill, schema = typed_orders.main()
    assert bill == typed_orders.Bill("flour", 750)
    assert json.loads(schema)["name"] == "Bill"


@pytest.mark.slow
def test_each_instance_answers_for_all_keys() -> None:
    totals = {"bran": 2, "flour": 12, "oats": 1, "rye": 4}
    assert interactive_queries.main() == [totals, totals]


@pytest.mark.slow
def test_a_crash_loses_totals_in_a_dict_and_not_in_a_store() -> None:
    report = simulated_crashes.main()
    assert "output \"totals\", key 'ann': expected 90, found" in report


@pytest.mark.slow
def test_a_faust_application_counts_on_our_broker() -> None:
    pytest.importorskip("faust")
    from examples import faust_on_millstream

    assert faust_on_millstream.main() == {"mill": 3, "stream": 1, "water": 1}


def pipeline(engine: str) -> argparse.Namespace:
    day = datetime(2026, 1, 5, tzinfo=UTC).date().isoformat()
    given = ["--engine", engine, "--events", "2000", "--day", day, "--master", MASTER]
    return spark_pipeline.arguments([*given, "--limit", "900"])


@pytest.mark.slow
def test_the_pipeline_has_results() -> None:
    rows = {each.name: each.rows for each in spark_pipeline.run("native", pipeline("native"))}
    assert all(rows.values())
    assert rows["spending"] == rows["accounts"]


@pytest.mark.long  # seven queries on Spark: cases on Spark hold the same for every step of a plan
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1_800)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_both_engines_give_the_same_results_of_the_pipeline() -> None:
    native = spark_pipeline.run("native", pipeline("native"))
    shared_session()  # the one that all tests have
    assert differences(native, spark_pipeline.run("spark", pipeline("spark"))) == {}


def test_every_example_is_in_the_table() -> None:
    table = (EXAMPLES / "README.md").read_text()
    for file in EXAMPLES.glob("*.py"):
        if file.stem != "__init__":
            assert f"`{file.name}`" in table
            assert len(file.read_text().splitlines()) < 65
