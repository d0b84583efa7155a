"""What is wanted of a connector becomes what runs."""

import threading

import pytest

from broker import Broker
from connect.errors import ConnectError, NotFound, RetriableError
from connect.herder.connector_supervisor import ConnectorSupervisor
from connect.runtime.worker import Worker
from connect.state.config_store import Config, RestartRequest, WantedConnector
from connect.state.status_store import State
from connect.state.task_state import TargetState, TaskId
from connect.stop_signal import TaskStopped
from tests.connect.herder.herding import SOURCE, herding, moves, wait_for
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

RUNNING, PAUSED, STOPPED, FAILED = State.RUNNING, State.PAUSED, State.STOPPED, State.FAILED


def config(name: str, **more: str) -> dict[str, str]:
    return {"connector.class": SOURCE, "name": name, **more}


def test_a_connector_with_the_same_configuration_keeps_its_tasks(broker: Broker) -> None:
    script = moves("a")
    with herding(broker) as herder:
        herder.create("a", config("a"))
        wait_for(herder, "a", RUNNING, [RUNNING])
        herder.put_config("a", config("a"))
        wait_until(lambda: script.log.count("start") == 2, "the second start")
        herder.put_config("a", config("a", x="1"))
        wait_until(lambda: script.log.count("start 0") == 2, "the second start of the task")
    assert script.log == [
        *("start", "start 0"),
        *("stop", "start"),  # nothing new for the task
        *("stop", "start", "stop 0", "start 0"),
        *("stop 0", "stop"),
    ]


def test_a_connector_that_wants_other_tasks_gets_them(broker: Broker) -> None:
    script = moves("b")
    with herding(broker) as herder:
        herder.create("b", config("b", **{"tasks.max": "3"}))
        wait_for(herder, "b", RUNNING, [RUNNING])
        script.tasks = [{"part": "0"}, {"part": "1"}, {"part": "2"}]
        assert script.connector is not None
        script.connector.context.request_task_reconfiguration()
        wait_for(herder, "b", RUNNING, [RUNNING] * 3)
        assert script.log.count("start 0") == 1, "a task that did not change goes on"
        script.tasks = [{"part": "1"}]
        script.connector.context.request_task_reconfiguration()
        wait_for(herder, "b", RUNNING, [RUNNING])
        assert [task.config["part"] for task in herder.tasks("b")] == ["1"]
        with pytest.raises(NotFound):
            herder.task_status(TaskId("b", 1))


def test_a_connector_that_fails_to_start_reports_why_and_stops_no_other(broker: Broker) -> None:
    script, other = moves("c"), moves("other")

    def fail(_: object) -> None:
        raise RuntimeError("no such database")

    script.on_start = fail
    with herding(broker) as herder:
        herder.create("c", config("c"))
        herder.create("other", config("other"))
        wait_for(herder, "c", FAILED)
        wait_for(herder, "other", RUNNING, [RUNNING])
        assert "no such database" in (herder.status("c").connector.trace or "")
        with pytest.raises(ConnectError, match="Failed to start connector: c"):
            herder.restart_connector("c")
        script.on_start = lambda _: None
        herder.restart_connector("c")
        wait_for(herder, "c", RUNNING, [RUNNING])
    assert other.log == ["start", "start 0", "stop 0", "stop"]


def test_a_connector_that_hangs_blocks_no_other(broker: Broker) -> None:
    script = moves("d")
    moves("other")
    released = threading.Event()
    script.on_start = lambda _: (released.wait(60), None)[1]
    with herding(broker) as herder:
        herder.create("d", config("d"))
        herder.create("other", config("other"))
        wait_for(herder, "other", RUNNING, [RUNNING])
        herder.delete("other")
        wait_until(lambda: herder.connectors() == ["d"], "the deletion")
        released.set()
        wait_for(herder, "d", RUNNING, [RUNNING])


def test_tasks_that_cannot_be_cut_now_are_cut_later(broker: Broker) -> None:
    script = moves("e")
    attempts = 0

    def away() -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise RetriableError("the database is away")

    script.on_task_configs = away
    with herding(broker) as herder:
        herder.create("e", config("e"))
        wait_for(herder, "e", RUNNING, [RUNNING])
    assert attempts == 3


def test_an_unexpected_error_while_it_is_kept_is_the_status_of_the_connector(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves("unlucky")
    with herding(broker) as herder:
        with monkeypatch.context() as patched:

            def broken(self: object, wanted: object) -> None:
                raise KeyError("unexpected")

            patched.setattr(ConnectorSupervisor, "_reconcile_tasks", broken)
            herder.create("unlucky", config("unlucky"))
            wait_for(herder, "unlucky", FAILED)
            assert "unexpected" in (herder.status("unlucky").connector.trace or "")
        herder.restart_connector("unlucky")
        wait_for(herder, "unlucky", RUNNING, [RUNNING])


def test_what_is_away_for_now_is_tried_again_while_a_connector_is_kept(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves("patient")
    reconcile, attempts = ConnectorSupervisor._reconcile_tasks, []

    def away(self: ConnectorSupervisor, wanted: WantedConnector) -> None:
        attempts.append(1)
        if len(attempts) < 3:
            raise RetriableError("the status topic is away")
        reconcile(self, wanted)

    monkeypatch.setattr(ConnectorSupervisor, "_reconcile_tasks", away)
    with herding(broker) as herder:
        herder.create("patient", config("patient"))
        wait_for(herder, "patient", RUNNING, [RUNNING])


def test_a_connector_that_wants_too_many_tasks_fails(broker: Broker) -> None:
    script = moves("f")
    script.tasks = [{"part": "0"}, {"part": "1"}]
    with herding(broker) as herder:
        herder.create("f", config("f"))
        wait_for(herder, "f", FAILED)
        assert "greater than 1" in (herder.status("f").connector.trace or "")
        herder.put_config("f", config("f", **{"tasks.max": "2"}))
        wait_for(herder, "f", RUNNING, [RUNNING, RUNNING])


def test_states_change_as_they_are_wanted(broker: Broker) -> None:
    script = moves("g")
    with herding(broker) as herder:
        herder.create("g", config("g"), TargetState.PAUSED)
        wait_for(herder, "g", PAUSED)
        assert script.log == []
        herder.resume("g")
        wait_for(herder, "g", RUNNING, [RUNNING])
        herder.pause("g")
        wait_for(herder, "g", PAUSED, [PAUSED])
        herder.stop_connector("g")
        wait_for(herder, "g", STOPPED)
        herder.pause("g")
        wait_for(herder, "g", PAUSED)
        herder.resume("g")
        wait_for(herder, "g", RUNNING, [RUNNING])


def test_a_restart_means_what_it_says(broker: Broker) -> None:
    script = moves("h")
    script.tasks = [{"part": "0"}, {"part": "1", "fails": "true"}]
    with herding(broker) as herder:
        herder.create("h", config("h", **{"tasks.max": "2"}))
        wait_for(herder, "h", RUNNING, [RUNNING, FAILED])
        assert "out of order" in (herder.task_status(TaskId("h", 1)).trace or "")
        answered = herder.restart("h", RestartRequest(include_tasks=True, only_failed=True))
        assert answered.connector.state is RUNNING
        assert [each.state for each in answered.tasks.values()] == [RUNNING, State.RESTARTING]
        wait_until(lambda: script.log.count("start 1") == 2, "the restart of the failed task")
        assert script.log.count("start 0") == script.log.count("start") == 1
        herder.restart_task(TaskId("h", 0))
        wait_until(lambda: script.log.count("start 0") == 2, "the restart of one task")
        herder.restart("h", RestartRequest(include_tasks=True))
        wait_until(lambda: script.log.count("start 1") == 3, "the restart of all")
        assert script.log.count("start 0") == 3
        assert script.log.count("start") == 2


def test_secrets_do_not_get_into_stores_or_answers(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "s3cret")
    script = moves("i")
    settings = {"config_providers": "env", "config_providers_env_class": "EnvVarConfigProvider"}
    with herding(broker, **settings) as herder:
        reference = "${env:PASSWORD}"
        herder.create("i", config("i", password=reference))
        wait_for(herder, "i", RUNNING, [RUNNING])
        assert [each["password"] for each in script.configs] == ["s3cret", "s3cret"]
        assert herder.info("i").config["password"] == reference
        assert herder.tasks("i")[0].config["password"] == reference


def test_a_deleted_connector_may_come_again_at_once(broker: Broker) -> None:
    script = moves("j")
    with herding(broker) as herder:
        for _ in range(5):
            herder.create("j", config("j"))
            herder.delete("j")
        herder.create("j", config("j"))
        wait_for(herder, "j", RUNNING, [RUNNING])
        herder.delete("j")
        wait_until(lambda: herder.connectors() == [], "the deletion")
        wait_until(lambda: script.log.count("start") == script.log.count("stop"), "all stops")


def test_connectors_go_on_where_the_last_worker_ended(broker: Broker) -> None:
    script = moves("k")
    moves("l")
    with herding(broker) as first:
        first.create("k", config("k"))
        first.create("l", config("l"))
        wait_for(first, "k", RUNNING, [RUNNING])
        first.pause("l")
        wait_for(first, "l", PAUSED, [PAUSED])
        first.used_topic(TaskId("k", 0), "some-topic")
    starts = script.log.count("start")
    with herding(broker) as second:
        wait_for(second, "k", RUNNING, [RUNNING])
        wait_for(second, "l", PAUSED, [PAUSED])
        assert script.log.count("start") == starts + 1
        assert second.topics("k") == ["some-topic"]


def test_tasks_of_an_earlier_connector_of_the_name_are_not_run(broker: Broker) -> None:
    script = moves("m")
    script.tasks = [{"part": "0"}, {"part": "1"}]
    with herding(broker) as first:
        first.create("m", config("m", **{"tasks.max": "2"}))
        wait_for(first, "m", RUNNING, [RUNNING, RUNNING])
        first.delete("m")
    with herding(broker) as second:
        assert second.connectors() == []
        second.create("m", config("m"), TargetState.PAUSED)
        wait_for(second, "m", PAUSED)
        assert second.tasks("m") == []


def test_earlier_tasks_of_an_exactly_once_source_are_fenced_before_others_start(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = moves("f")
    script.tasks = [{"part": "0"}, {"part": "1"}]
    real = Worker.fence_tasks

    def fence_tasks(worker: Worker, name: str, config: Config, count: int) -> None:
        real(worker, name, config, count)
        script.log.append(f"fence {count}")

    monkeypatch.setattr(Worker, "fence_tasks", fence_tasks)
    settings = {"exactly_once_source_support": "enabled"}
    with herding(broker, **settings) as herder:
        herder.create("f", config("f", **{"tasks.max": "2"}))
        wait_for(herder, "f", RUNNING, [RUNNING] * 2)
        script.tasks = [{"part": "0 and 1"}]
        herder.put_config("f", config("f", **{"tasks.max": "1"}))
        wait_for(herder, "f", RUNNING, [RUNNING])
        log = [each for each in script.log if each not in {"start", "stop"}]
        assert log[0] == "fence 0"
        assert log[-2:] == ["fence 2", "start 0 and 1"]
        herder.restart_task(TaskId("f", 0))
        assert script.log.count("fence 2") == 1, "the same tasks fence each other by themselves"
    with herding(broker, **settings) as herder:
        wait_for(herder, "f", RUNNING, [RUNNING])
        assert [each for each in script.log if each.startswith("fence")] == ["fence 0", "fence 2"]


def test_a_task_is_not_confirmed_when_others_have_replaced_it(broker: Broker) -> None:
    moves("g")
    with herding(broker) as herder:
        herder.create("g", config("g"))
        wait_for(herder, "g", RUNNING, [RUNNING])
        supervisor, wanted = herder._supervisors["g"], herder._configs.connector("g")
        assert wanted is not None
        supervisor._confirm(wanted.generation)
        with pytest.raises(TaskStopped, match="have changed"):
            supervisor._confirm(wanted.generation - 1)
