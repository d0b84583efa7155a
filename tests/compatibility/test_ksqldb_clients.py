"""Clients of ksqlDB from npm and PyPI, unchanged, against `millstream sql server`."""

from collections.abc import Callable

import pytest

from tests.compatibility.conftest import Facts, facts_of
from tests.support.ksqldb_clients import Runner, node_clients, python_clients
from tests.support.peer import PeerMissing, skip_without_peer
from tests.support.sql_server import SqlServerProcess

pytestmark = [pytest.mark.slow, pytest.mark.peer, pytest.mark.xdist_group("ksqldb-clients")]

NODE_SCENARIOS = (
    *("ksqldb-client-statements", "ksqldb-client-rows", "ksqldb-client-errors"),
    *("ksqldb-js-statements", "ksqldb-js-rows", "ksqldb-js-errors", "ksqldb-js-about"),
    # The last one: the server has nothing left after it.
    *("ksqldb-rx-client", "ksqldb-js-terminate-cluster"),
)
PYTHON_SCENARIOS = (
    *("ksqldb-rows", "ksqldb-errors"),
    *("ksql-statements", "ksql-rows", "ksql-errors"),
    "ksqldb-client",
)


def seen_by(
    fetch: Callable[[], Runner], scenarios: tuple[str, ...], folders: pytest.TempPathFactory
) -> Facts:
    """What clients saw in their scenarios, all on one server."""
    try:
        run = fetch()
    except PeerMissing as missing:
        skip_without_peer(f"no clients of ksqlDB: {missing}")
    with SqlServerProcess(folders.mktemp("server")) as server:
        return facts_of(run(server.wait_serving(), *scenarios))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """What those of npm saw."""
    return seen_by(node_clients, NODE_SCENARIOS, tmp_path_factory)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """What those of PyPI saw."""
    return seen_by(python_clients, PYTHON_SCENARIOS, tmp_path_factory)


# --- npm: ksqldb-client, all of it over HTTP/2 -------------------------------------------------


def test_ksqldb_client_of_npm_creates_lists_describes_and_drops(node: Facts) -> None:
    formats = {"keyFormat": "KAFKA", "valueFormat": "JSON", "isWindowed": False}
    assert node("ksqldb-client-statements") == {
        "created": "SUCCESS",
        "stream": {"type": "STREAM", "name": "SIMPLE_WORDS", "topic": "simple-words", **formats},
        "table": {"type": "TABLE", "name": "SIMPLE_COUNTS", "topic": "SIMPLE_COUNTS", **formats},
        "topic": True,
        "query": ["SIMPLE_COUNTS"],
        "fields": [["WORD", "STRING"], ["N", "BIGINT"]],
        "terminated": 200,
        "dropped": "SUCCESS",
    }


def test_ksqldb_client_of_npm_inserts_pushes_and_pulls(node: Facts) -> None:
    assert node("ksqldb-client-rows") == {
        "inserted": [[{"status": "ok", "seq": 0}]] * 3,
        "seen": [
            {"ITEM": "a", "AMOUNT": 1},
            {"ITEM": "b", "AMOUNT": 2},
            {"ITEM": "a", "AMOUNT": 3},
        ],
        "closed": 200,
        "ended": 200,
        "rows": [{"ITEM": "a", "TOTAL": 4}],
    }


def test_ksqldb_client_of_npm_is_told_what_was_refused(node: Facts) -> None:
    missing = "Exception while preparing statement: SIMPLE_NOWHERE does not exist."
    found = node("ksqldb-client-errors")
    assert found["statuses"] == [400, 400, 400]
    assert found["messages"] == ["Stream SIMPLE_NOWHERE does not exist.", missing, missing]


# --- npm: ksqldb-js, rows over HTTP/2 and the rest over HTTP/1.1 -------------------------------


def test_ksqldb_js_creates_what_it_builds_statements_for(node: Facts) -> None:
    found = node("ksqldb-js-statements")
    assert str(found.pop("query")).startswith("CSAS_JS_FAST_")
    assert found == {
        "created": "SUCCESS",
        "fields": ["NAME", "MOST"],
        "terminated": "SUCCESS",
        "status": "SUCCESS",
    }


def test_ksqldb_js_takes_each_frame_for_a_row(node: Facts) -> None:
    rows = [[f"r{number % 3}", number] for number in range(20)]
    assert node("ksqldb-js-rows") == {
        "inserted": [["ok", number] for number in range(20)],
        "columns": ["NAME", "LAP"],
        "seen": rows,
        "terminated": True,
        "pulled": rows,
        "dated": rows,
    }


def test_ksqldb_js_knows_errors_by_their_code(node: Facts) -> None:
    errors = node("ksqldb-js-errors")["errors"]
    assert isinstance(errors, list)
    assert [each[:2] for each in errors] == [
        ["ksqlDBError", code] for code in (40001, 40001, 40000, 40400)
    ]


def test_ksqldb_js_is_told_about_the_server(node: Facts) -> None:
    found = node("ksqldb-js-about")
    assert found["info"] == ["version", "kafkaClusterId", "ksqlServiceId", "serverStatus"]
    assert (found["healthy"], found["valid"]) == (True, True)


def test_ksqldb_js_terminates_the_cluster(node: Facts) -> None:
    assert node("ksqldb-js-terminate-cluster") == {
        "answer": {"message": "Cluster terminated"},
        "refused": 50304,
    }


# --- npm: ksqldb-rx-client ---------------------------------------------------------------------


def test_ksqldb_rx_client_works(node: Facts) -> None:
    assert node("ksqldb-rx-client") == {
        "created": "SUCCESS",
        "seen": [{"ID": number, "PRICE": number + 0.5} for number in (1, 2, 3)],
        "extended": True,
        "plain": True,
        "tables": "tables",
        "status": "RUNNING",
        "healthy": True,
        "refused": 40001,
    }


# --- PyPI: ksqldb, rows over HTTP/2 ------------------------------------------------------------


def test_ksqldb_of_pypi_creates_inserts_pushes_and_pulls(python: Facts) -> None:
    assert python("ksqldb-rows") == {
        "created": ["SUCCESS", "SUCCESS"],
        "inserted": [{"status": "ok", "seq": number} for number in range(3)],
        "columns": ["ITEM", "AMOUNT"],
        "seen": [["a", 1], ["b", 2], ["a", 3]],
        "closed": True,
        "closed_again": False,
        "pulled": [["a", 4]],
        "properties": True,
    }


def test_ksqldb_of_pypi_is_told_what_was_refused(python: Facts) -> None:
    assert python("ksqldb-errors") == {"statement": [400, 40001], "query": 40001}


# --- PyPI: ksql --------------------------------------------------------------------------------


def test_ksql_of_pypi_creates_lists_and_drops(python: Facts) -> None:
    assert python("ksql-statements") == {
        "version": True,
        "made": [True, True],
        "streams": ["OLD_SHORT", "OLD_STREAM"],
        "terminated": "SUCCESS",
        "dropped": "SUCCESS",
        "properties": True,
    }


def test_ksql_of_pypi_inserts_pushes_and_pulls(python: Facts) -> None:
    assert python("ksql-rows") == {
        "inserted": [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}],
        "limited": [{"ITEM": "a", "AMOUNT": 1}, {"ITEM": "a", "AMOUNT": 3}],
        "rows": [["a", 1], ["a", 3]],
        "closed": True,
        "closed_again": False,
        "pulled": [{"ITEM": "a", "TOTAL": 4}],
    }


def test_ksql_of_pypi_is_told_what_was_refused(python: Facts) -> None:
    missing = "OLD_NOWHERE does not exist."
    assert python("ksql-errors") == {
        "errors": [
            [40001, f"Stream {missing}"],
            [40001, f"Exception while preparing statement: {missing}"],
        ]
    }


# --- PyPI: ksqldb-client -----------------------------------------------------------------------


def test_answers_fit_the_models_of_ksqldb_client_of_pypi(python: Facts) -> None:
    found = python("ksqldb-client")
    assert str(found.pop("query")).startswith("CTAS_MODEL_SUMS_")
    assert "MODEL_SUMS" in str(found.pop("queries"))
    assert found == {
        "status": "SUCCESS",
        "streams": ["MODEL_SALES"],
        "seen": [["a", 1], ["a", 3]],
        "final": "Limit Reached",
        "pulled": [["a", 4]],
        "refused": True,
        "server": "RUNNING",
    }
