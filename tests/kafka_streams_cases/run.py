"""Runs one case: builds its topology, plays its script, and says whether all was as expected."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from broker.errors import MillstreamError
from streams.errors import StreamsConfigError, StreamsError, TopologyError
from streams.windows import SessionWindows
from tests.kafka_streams_cases.build import BuiltCase, build_case
from tests.kafka_streams_cases.compare import Mismatch, compare_records, compare_rows, short
from tests.kafka_streams_cases.flows import StoreFacts
from tests.kafka_streams_cases.harness import Harness, Opener, raw_input, row
from tests.kafka_streams_cases.values import from_json, to_json

# Which of our errors stands for a Java class; any other class is met by any StreamsError.
ERRORS: Mapping[str, tuple[type[Exception], ...]] = {
    "TopologyException": (TopologyError,),
    "IllegalArgumentException": (TopologyError, StreamsConfigError, ValueError),
    "StreamsException": (StreamsError,),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case went."""

    id: str
    status: str  # "passed" or "failed"
    reason: str = ""
    quirk: str = ""

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return self.status == "passed"


def run_case(case: Mapping[str, Any], opener: Opener) -> Outcome:
    """Build, play, compare; whatever goes wrong is the reason."""
    try:
        _run(case, opener)
    except Mismatch as difference:
        return Outcome(case["id"], "failed", str(difference), case.get("quirk", ""))
    except Exception as error:  # a runner reports every failure, also those nobody thought of
        return Outcome(case["id"], "failed", _reason(error), case.get("quirk", ""))
    return Outcome(case["id"], "passed", quirk=case.get("quirk", ""))


def _reason(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = "/".join(place.filename.split("/")[-2:])
    return f"{type(error).__name__}: {error} ({where}:{place.lineno})"


def _run(case: Mapping[str, Any], opener: Opener) -> None:
    expected_error = case.get("error", {})
    try:
        built = build_case(case)
    except Exception as error:
        if expected_error.get("at") != "build":
            raise
        _compare_errors(expected_error["class"], error)
        return
    if expected_error.get("at") == "build":
        raise Mismatch(f"expected {expected_error['class']} when building, got none")
    harness = opener(built, case.get("config", {}))
    try:
        if "internal_topics" in case and harness.internal_topics() != case["internal_topics"]:
            raise Mismatch(
                f"internal topics: expected {case['internal_topics']}, "
                f"got {harness.internal_topics()}"
            )
        if expected_error:
            _play_to_the_error(case, built, harness)
        else:
            play(case["script"], built, harness)
    finally:
        harness.close()


def _play_to_the_error(case: Mapping[str, Any], built: BuiltCase, harness: Harness) -> None:
    *before, last = case["script"]
    play(before, built, harness)
    try:
        play([last], built, harness)
    except Exception as error:
        _compare_errors(case["error"]["class"], error)
        return
    raise Mismatch(f"expected {case['error']['class']} at the last record, got none")


def _compare_errors(java_class: str, error: Exception) -> None:
    """The error, or one of its causes, must be one that stands for the Java class."""
    allowed = ERRORS.get(java_class, (StreamsError,))
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, allowed):
            return
        cause = cause.__cause__
    kind = "ours" if isinstance(error, MillstreamError) else "Python's"
    raise Mismatch(f"expected {java_class}, got {kind} {_reason(error)}")


# ---- the script


def play(script: list[dict[str, Any]], built: BuiltCase, harness: Harness) -> None:
    """Play the actions of a script, one by one."""
    played = _Script(built, harness)
    for number, action in enumerate(script):
        kind = next((name for name in ACTIONS if name in action), None)
        if kind is None:
            raise Mismatch(f"the action {action} is not known")
        try:
            ACTIONS[kind](played, action)
        except Mismatch as difference:
            raise Mismatch(f"action {number}: {difference}") from None


class _Script:
    """The actions of a script on a harness."""

    def __init__(self, built: BuiltCase, harness: Harness) -> None:
        self.built = built
        self.harness = harness

    def pipe(self, action: dict[str, Any]) -> None:
        self.harness.pipe([raw_input(action, self.built.sources[action["in"]])])

    def pipe_batch(self, action: dict[str, Any]) -> None:
        self.harness.pipe(
            [raw_input(item, self.built.sources[item["in"]]) for item in action["in_batch"]]
        )

    def expect(self, action: dict[str, Any]) -> None:
        topic = action["expect"]
        flow = self.built.sinks[topic]
        compare_records(action, [row(record, flow) for record in self.harness.read(topic)])

    def expect_none(self, action: dict[str, Any]) -> None:
        topic = action["expect_none"]
        found = [row(record, self.built.sinks[topic]) for record in self.harness.read(topic)]
        if found:
            raise Mismatch(f'topic "{topic}": expected nothing, got {", ".join(map(short, found))}')

    def store(self, action: dict[str, Any]) -> None:
        name = action["store"]
        compare_store(action, self.harness.rows(name), self.built.stores[name])

    def metric(self, action: dict[str, Any]) -> None:
        compare_metric(action, self.harness.metric(action["metric"]))


def compare_store(
    action: Mapping[str, Any],
    rows: list[tuple[object, object, int | None]],
    facts: StoreFacts,
) -> None:
    """Raise Mismatch unless a store holds what a `store` action says."""
    name = action["store"]
    found = [[to_json(key), to_json(value), timestamp_ms] for key, value, timestamp_ms in rows]
    if "all" in action:
        edge = _edge([*found, *action["all"]], facts)
        compare_rows(name, *(_live(part, facts, edge) for part in (action["all"], found)))
        return
    wanted = to_json(from_json(action["get"], facts.key))
    got = next((entry[1] for entry in found if entry[0] == wanted), None)
    if got != action["equals"]:
        raise Mismatch(f'store "{name}", key {wanted}: expected {action["equals"]}, got {got}')


def compare_metric(action: Mapping[str, Any], found: float) -> None:
    """Raise Mismatch unless a metric is what a `metric` action says."""
    if found != action["equals"]:
        raise Mismatch(f"{action['metric']}: expected {action['equals']}, got {found:g}")


# A store may keep rows longer than it must, and Kafka shows expired ones that are still in its
# cache; so only rows that are not expired are compared.


def _time_ms(entry: list[Any], facts: StoreFacts) -> int:
    return int(entry[0]["end" if isinstance(facts.windows, SessionWindows) else "start"])


def _edge(rows: list[list[Any]], facts: StoreFacts) -> int | None:
    """Rows at or before this time are expired; None: there are none."""
    if facts.retention_ms is None or not rows:
        return None
    newest = max(_time_ms(entry, facts) for entry in rows)
    return newest - facts.retention_ms - (1 if facts.keeps_the_edge else 0)


def _live(rows: list[list[Any]], facts: StoreFacts, edge: int | None) -> list[list[Any]]:
    return [entry for entry in rows if edge is None or _time_ms(entry, facts) > edge]


ACTIONS: Mapping[str, Callable[[_Script, dict[str, Any]], None]] = {
    "in": _Script.pipe,
    "in_batch": _Script.pipe_batch,
    "expect": _Script.expect,
    "expect_none": _Script.expect_none,
    "store": _Script.store,
    "metric": _Script.metric,
    "advance_wall_clock_ms": lambda script, action: script.harness.advance_wall_clock(
        action["advance_wall_clock_ms"]
    ),
    "commit": lambda script, action: script.harness.commit(),
    "restart": lambda script, action: script.harness.restart(),
}
