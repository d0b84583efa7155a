"""Every case of tests/cases/streams: on the test driver, and as an application on a broker."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client.opening import Target
from broker.config import BrokerConfig
from broker.server import Server
from tests.kafka_streams_cases.cases import read_cases
from tests.kafka_streams_cases.on_app import clear, run_on_app
from tests.kafka_streams_cases.on_driver import DriverHarness, open_driver
from tests.kafka_streams_cases.run import run_case

CASES = list(read_cases([Path(__file__).parents[1] / "cases" / "streams"]))
# What fails when it is built, or stops at its last record, needs no broker to do so.
ON_APP = [case for case in CASES if "error" not in case and "runs_on" not in case]
PARTITIONED = [case for case in ON_APP if case.get("partitions", 1) > 1]
# Only what makes waiting shorter; everything else stays at the defaults that users get.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "listeners": "PLAINTEXT://127.0.0.1:0",
}
TCP_SAMPLE_AT_MOST = 40
application_numbers = count(1)


def operators(case: dict[str, Any]) -> set[str]:
    """The operators of a case, with the names of their arguments, and the file it is in."""
    steps = [(step["op"], *step) for step in case["topology"]]
    used = {f"{op}({name})" for op, *given in steps for name in given if name != "id"}
    return {case["id"].partition("/")[0], *used}


def sample(cases: list[dict[str, Any]]) -> set[str]:
    """The ids of few cases with all operators: each next one has the most that are missing."""
    missing = set().union(*map(operators, cases))
    chosen = set()
    while missing:
        best = max(cases, key=lambda case: len(operators(case) & missing))
        chosen.add(best["id"])
        missing -= operators(best)
    return chosen


# All cases run on the test driver and on the embedded broker; these over TCP, too, and the others
# in the long run.
TCP_SAMPLE = sample(ON_APP)


def names(cases: list[dict[str, Any]]) -> list[str]:
    """What the tests are called."""
    return [case["id"] for case in cases]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Our broker in this process."""
    config = BrokerConfig.from_properties(SETTINGS)
    with Broker(config, data_directory=str(tmp_path_factory.mktemp("broker"))) as broker:
        yield broker


@pytest.fixture(scope="module")
def address(broker: Broker) -> Iterator[str]:
    """The same broker over TCP."""
    with Server(broker) as server:
        yield server.bootstrap


@pytest.fixture
def target(request: pytest.FixtureRequest, broker: Broker, address: str) -> Iterator[Target]:
    """Where an application finds its broker; its topics are gone afterwards."""
    found: Target = broker if request.param == "embedded" else address
    yield found
    clear(found)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_a_case_goes_as_it_says_on_the_test_driver(case: dict[str, Any]) -> None:
    """Built with the DSL, its script played, all it expects found."""
    outcome = run_case(case, open_driver)
    assert outcome.passed, outcome.reason


@pytest.mark.slow
@pytest.mark.long
def test_all_cases_go_as_they_say_with_stores_on_disk(tmp_path: Path) -> None:
    """The same driver, with RocksDB below its stores."""
    numbers = count()
    outcomes = [
        run_case(
            case,
            lambda built, config: DriverHarness(built, config, tmp_path / str(next(numbers))),
        )
        for case in CASES
    ]
    assert [(outcome.id, outcome.reason) for outcome in outcomes if not outcome.passed] == []


@pytest.mark.slow
@pytest.mark.spread
@pytest.mark.parametrize(
    ("case", "target"),
    [
        pytest.param(
            case,
            target,
            id=f"{target}-{case['id']}",
            marks=[pytest.mark.long] if target == "tcp" and case["id"] not in TCP_SAMPLE else [],
        )
        for target in ("embedded", "tcp")
        for case in ON_APP
    ],
    indirect=["target"],
)
def test_a_case_goes_as_it_says_in_an_application(
    case: dict[str, Any], target: Target, tmp_path: Path
) -> None:
    """All inputs written, then the application started, then all that it wrote compared."""
    number = next(application_numbers)
    run_on_app(case, target, application_id=f"case-{number}", state_directory=tmp_path)


def test_the_sample_over_tcp_is_small_and_has_every_operator() -> None:
    chosen = [case for case in ON_APP if case["id"] in TCP_SAMPLE]
    assert set().union(*map(operators, chosen)) == set().union(*map(operators, ON_APP))
    assert len(chosen) <= TCP_SAMPLE_AT_MOST


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("case", ON_APP, ids=names(ON_APP))
def test_a_case_goes_as_it_says_exactly_once(
    case: dict[str, Any], broker: Broker, tmp_path: Path
) -> None:
    """The same in transactions, read when they are committed."""
    run_in_transactions(case, broker, tmp_path, threads=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", PARTITIONED, ids=names(PARTITIONED))
def test_partitions_are_shared_by_threads(
    case: dict[str, Any], broker: Broker, tmp_path: Path
) -> None:
    """Two partitions, two threads, and results of each in its own transactions."""
    run_in_transactions(case, broker, tmp_path, threads=2)


def run_in_transactions(
    case: dict[str, Any], broker: Broker, folder: Path, *, threads: int
) -> None:
    """Run a case exactly once; its topics are gone afterwards."""
    try:
        run_on_app(
            case,
            broker,
            application_id=f"case-{next(application_numbers)}",
            state_directory=folder,
            more={"processing.guarantee": "exactly_once_v2", "num.stream.threads": threads},
        )
    finally:
        clear(broker)


def test_a_case_that_does_not_run_everywhere_says_why() -> None:
    """A gap has a reason."""
    assert names([c for c in CASES if ("runs_on" in c) != bool(c.get("runs_on_reason"))]) == []


def test_case_names_are_unique() -> None:
    """A name says which case failed."""
    assert len(set(names(CASES))) == len(CASES)
