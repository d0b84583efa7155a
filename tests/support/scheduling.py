"""A pytest plugin that groups tests for pytest-xdist workers, and orders the groups.

The tests of a module run one after another in one worker, so that its fixtures are set up once.
Marks change that: tests with the same `xdist_group` run in one worker, whatever their module
(Spark, a Kafka cluster, databases); tests with `spread` run in any worker. Long groups start first,
so that the workers end together; durations are estimated from the last run or, for new tests, from
marks.

pytest-xdist has groups of its own (`--dist loadgroup`); with pytest 9.2 they have no effect.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.support.durations import FILE as DURATIONS
from tests.support.durations import wall_seconds

GROUP, SPREAD = "xdist_group", "spread"
FOLDER = "millstream_groups"  # in the input of a worker
# Of tests that are in no record: by their mark, by their time limit if they have one of their own,
# and of groups, most of which start something.
UNKNOWN_SECONDS, UNKNOWN_SLOW_SECONDS = 0.01, 1.0
UNKNOWN_SHARE_OF_LIMIT = 0.05
UNKNOWN_GROUP_SECONDS = 30.0
SLOW = ("slow", "peer", "long")
_folder = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Create the folder to which workers write the groups of their tests."""
    config.addinivalue_line("markers", f"{SPREAD}: runs in any worker, apart from its module")
    if not hasattr(config, "workerinput"):
        folder = TemporaryDirectory(prefix="millstream-groups-")
        config.add_cleanup(folder.cleanup)
        config.stash[_folder] = Path(folder.name)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Pass the path of the folder to a worker."""
    node.workerinput[FOLDER] = str(node.config.stash[_folder])


@pytest.hookimpl(tryfirst=True)  # pytest-xdist then reports that the collection is complete
def pytest_collection_finish(session: pytest.Session) -> None:
    """In a worker: write the groups and estimated durations of all tests."""
    given = getattr(session.config, "workerinput", None)
    if given is not None:
        groups = {item.nodeid: group for item in session.items if (group := group_of(item))}
        guessed = {item.nodeid: estimated_seconds(item) for item in session.items}
        path = Path(given[FOLDER]) / f"{given['workerid']}.json"
        path.write_text(json.dumps({"groups": groups, "seconds": guessed}))


def group_of(item: pytest.Item) -> str | None:
    """The group of a test; None for the group of its module."""
    mark = item.get_closest_marker(GROUP)
    if mark is not None:
        return str(mark.args[0])
    return item.nodeid if item.get_closest_marker(SPREAD) else None


def estimated_seconds(item: pytest.Item) -> float:
    """The duration of a test, estimated from its marks."""
    is_slow = any(item.get_closest_marker(name) for name in SLOW)
    limit = item.get_closest_marker("timeout")
    seconds = UNKNOWN_SLOW_SECONDS if is_slow else UNKNOWN_SECONDS
    return seconds if limit is None else max(seconds, UNKNOWN_SHARE_OF_LIMIT * limit.args[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> "GroupScheduling | None":
    """Use this module's scheduler, unless another distribution is requested."""
    if config.getoption("dist") != "load":
        return None
    return GroupScheduling(config, log, config.stash[_folder])


def longest_first(
    groups: dict[str, dict[str, bool]], recorded: dict[str, float], guessed: dict[str, float]
) -> list[str]:
    """The names of groups, longest first; new tests are estimated from their marks."""

    def seconds(name: str) -> float:
        tests = groups[name]
        total = sum(recorded.get(test, guessed[test]) for test in tests)
        is_marked = "/" not in name
        unknown = not any(test in recorded for test in tests)
        return max(total, UNKNOWN_GROUP_SECONDS) if is_marked and unknown else total

    return sorted(groups, key=lambda name: (-seconds(name), name))


def recorded_seconds() -> dict[str, float]:
    """The duration of each test in the last run, if recorded."""
    if not DURATIONS.exists():
        return {}
    record = json.loads(DURATIONS.read_text())
    return {name: wall_seconds(phases) for name, phases in record.items()}


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Distributes groups of tests to workers."""

    collection: list[str] | None

    def __init__(self, config: pytest.Config, log: Producer, folder: Path) -> None:
        super().__init__(config, log)
        self._folder = folder
        self._groups: dict[str, str] = {}
        self._guessed: dict[str, float] = {}
        self._indexes: dict[str, int] = {}

    def schedule(self) -> None:
        """Start when all workers have collected their tests; continue when a worker is added."""
        if self.collection is not None:
            super().schedule()
            return
        if not self._check_nodes_have_same_collection():
            return
        self.collection = list(next(iter(self.registered_collections.values())))
        self._indexes = {name: number for number, name in enumerate(self.collection)}
        for path in self._folder.glob("*.json"):
            of_worker = json.loads(path.read_text())
            self._groups.update(of_worker["groups"])
            self._guessed.update(of_worker["seconds"])
        self._fill_queue(self.collection)
        for _ in range(3):  # a worker starts a test only when it has the next one
            for node in self.nodes:
                self._reschedule(node)

    def _fill_queue(self, names: Iterable[str]) -> None:
        groups: dict[str, dict[str, bool]] = {}
        for name in names:
            groups.setdefault(self._split_scope(name), {})[name] = False
        for group in longest_first(groups, recorded_seconds(), self._guessed):
            self.workqueue[group] = groups[group]

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid) or nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Like the base class, which searches the list of all tests for each test."""
        group, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][group] = tests
        node.send_runtest_some([self._indexes[name] for name, done in tests.items() if not done])

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Like the base class, which iterates over all completed groups."""
        assert self.collection is not None
        name = self.collection[item_index]
        group = self._split_scope(name)
        tests = self.assigned_work[node][group]
        tests[name] = True
        if all(tests.values()):
            del self.assigned_work[node][group]
        self._reschedule(node)
