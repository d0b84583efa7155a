"""Pipelines under faults: right ones pass, and each planted defect is found."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from millstream.simulation import simulated_platform
from millstream.testing import (
    DifferentResult,
    FailedRun,
    Simulated,
    crash,
    duplicate,
    late,
    network,
    reorder,
    stream,
    table,
)
from millstream.testing.faults import FaultKind
from millstream.testing.pipeline_platform import run_once
from millstream.testing.simulated import _experiment, _explained, _pipeline, scenario_of
from streams import StreamsBuilder, Topology
from tests.millstream.testing import pipelines
from tests.millstream.testing.pipelines import GRACE, INPUTS, OUTPUTS, ROWS, TOTALS, Build

pytestmark = pytest.mark.slow

SOON = timedelta(seconds=5)


def failure_of(
    build: Build, faults: Sequence[FaultKind], seeds: int = 20, **settings: object
) -> str:
    """The report about a pipeline with a defect."""
    with pytest.raises(DifferentResult) as raised:
        Simulated().run(
            build, inputs=INPUTS, outputs=OUTPUTS, faults=faults, seeds=seeds, settings=settings
        )
    return str(raised.value)


# --- right pipelines ----------------------------------------------------------------------------


def test_sums_in_a_store_survive_crashes(simulated: Simulated) -> None:
    found = simulated.run(pipelines.totals, inputs=INPUTS, outputs=OUTPUTS, seeds=6)
    assert found == {"totals": TOTALS}


def test_instances_share_partitions_and_survive_crashes(simulated: Simulated) -> None:
    found = simulated.run(
        pipelines.totals_by_remainder,
        inputs=INPUTS,
        outputs=OUTPUTS,
        seeds=3,
        partitions=2,
        instances=2,
    )
    assert sum(found["totals"].values()) == sum(TOTALS.values())


def test_windows_with_grace_count_late_records(simulated: Simulated) -> None:
    faults = (crash(), late(by=GRACE), network())
    build = pipelines.counts_by_window(GRACE)
    found = simulated.run(build, inputs=INPUTS, outputs=OUTPUTS, faults=faults, seeds=5)
    assert sum(found["totals"].values()) == 24


@pytest.mark.parametrize(
    ("build", "fault"),
    [
        (pipelines.newest, reorder(within=SOON)),
        (pipelines.processed(pipelines.Deduplicated, pipelines.SEEN), duplicate()),
    ],
    ids=["newest by time", "deduplicated"],
)
def test_pipelines_cope_with_what_they_are_made_for(
    simulated: Simulated, build: Build, fault: FaultKind
) -> None:
    simulated.run(build, inputs=INPUTS, outputs=OUTPUTS, faults=(crash(), fault), seeds=4)


def test_sql_survives_crashes(simulated: Simulated, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.sql"
    file.write_text(pipelines.SQL)
    outputs = {"totals": table(), "large": stream()}
    found = simulated.run(sql=file, inputs=ROWS, outputs=outputs, seeds=3)
    assert found["totals"]["ann"] == {"ORDERS": 8, "AMOUNT": 84}
    assert found["large"] == {
        name: [{"AMOUNT": n}] for name, n in zip(pipelines.CUSTOMERS, (21, 22, 23), strict=True)
    }


def test_a_slow_machine_makes_no_difference(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_platform, "LONG_REAL_S", 0.0)
    simulated.run(pipelines.totals, inputs=INPUTS, outputs=OUTPUTS, seeds=1)


# --- planted defects ----------------------------------------------------------------------------


def test_state_in_a_dict_is_lost_by_a_crash() -> None:
    report = failure_of(pipelines.processed(pipelines.SumInDict), [crash(of=["application"])])
    assert 'output "totals", key' in report
    assert "restarted" in report
    assert "--simulation-seed" not in report  # no fixture


def test_state_in_a_global_is_found_without_any_fault() -> None:
    report = failure_of(pipelines.sums_in_a_global(), [crash()])
    assert "the result differs without any fault" in report


def test_at_least_once_counts_twice() -> None:
    report = failure_of(pipelines.totals, [crash()], processing_guarantee="at_least_once")
    assert "expected 84, found" in report


def test_windows_without_grace_drop_late_records() -> None:
    report = failure_of(pipelines.counts_by_window(timedelta(0)), [crash(), late(by=GRACE)])
    enough = report.partition("faults that are enough")[2].partition("\n\n")[0]
    assert enough.count("late: orders[") == 1
    assert "killed" not in enough


def test_sql_windows_without_grace_drop_late_records(simulated: Simulated) -> None:
    key = bytes  # the customer and the start of the window
    with pytest.raises(DifferentResult, match="late: orders"):
        simulated.run(
            sql=pipelines.SQL_WITHOUT_GRACE,
            inputs=ROWS,
            outputs={"counts": table(key=key)},
            faults=[late(by=GRACE)],
        )


def test_the_order_of_arrival_is_not_that_of_events() -> None:
    assert "reorder: orders[" in failure_of(pipelines.last_to_arrive, [reorder(within=SOON)])


def test_a_deduplication_that_forgets_lets_duplicates_pass() -> None:
    build = pipelines.processed(pipelines.Forgetful, pipelines.SEEN)
    with pytest.raises(DifferentResult, match="duplicate: orders"):
        Simulated().run(
            build,
            inputs=INPUTS,
            outputs={"totals": stream(key=str, value=int)},
            faults=[duplicate()],
        )


def test_a_pipeline_that_cannot_restart_is_reported_with_its_error() -> None:
    build = pipelines.processed(pipelines.StartsEmpty, pipelines.SEEN)
    report = failure_of(build, [crash(of=["application"])])
    assert "the application processes all its input" in report
    assert "ValueError: not empty" in report.partition("faults of this seed")[0]


def test_a_difference_that_does_not_come_again_is_shown_as_such() -> None:
    experiment = _experiment(_pipeline(pipelines.totals, None, {}), INPUTS, OUTPUTS, 1, 1)
    expected = run_once(experiment, experiment.scenario(0))
    scenario = scenario_of(1, experiment, [crash()])
    report = _explained(experiment, scenario, expected, ["another total"], "seed {seed}")
    found = report.partition("faults of this seed")[0]
    assert "another total" in found
    assert "only in the first run" in found


# --- what can be wrong with a test itself -------------------------------------------------------


def failing() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int)
    orders.map_values(lambda amount: 1 // amount).to("totals", key=str, value=int)
    return builder.build()


def test_a_pipeline_that_fails_without_faults_is_told_apart(simulated: Simulated) -> None:
    with pytest.raises(FailedRun, match=r"ZeroDivisionError[^$]*offset 0"):
        simulated.run(failing, inputs=INPUTS, outputs=OUTPUTS)


def test_statements_that_are_wrong_are_shown(simulated: Simulated) -> None:
    wrong = pipelines.SQL.replace("WHERE amount", "WHERE price")
    with pytest.raises(FailedRun, match="PRICE"):
        simulated.run(sql=wrong, inputs=ROWS, outputs={"totals": table()})


def test_an_input_that_nobody_reads_is_refused(simulated: Simulated) -> None:
    with pytest.raises(ValueError, match='does not read "order"'):
        simulated.run(pipelines.totals, inputs={"order": []}, outputs=OUTPUTS)
    with pytest.raises(TypeError, match="or sql="):
        simulated.run(inputs=INPUTS, outputs=OUTPUTS)


# --- seeds --------------------------------------------------------------------------------------


def test_one_seed_is_one_history() -> None:
    kinds = (crash(), duplicate(), network())
    experiment = _experiment(_pipeline(pipelines.totals, None, {}), INPUTS, OUTPUTS, 1, 1)
    first, second, other = (
        run_once(experiment, scenario_of(seed, experiment, kinds)) for seed in (3, 3, 4)
    )
    assert first.lines == second.lines
    assert first.digest == second.digest != other.digest


def test_a_single_seed_can_be_chosen() -> None:
    assert list(Simulated(only_seed=7)._seeds(10)) == [7]
    assert list(Simulated()._seeds(3)) == [1, 2, 3]
    assert list(Simulated(seed_count=2)._seeds(10)) == [1, 2]
