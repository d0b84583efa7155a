"""Rules that rewrite steps before they become nodes.

Always: sources of the same topics become one. When asked for: a source table's topic is its
changelog; the repartitions below one change of keys become one, right after it; a join of a stream
with itself keeps one window instead of two. Each changes internal topics, so an application must
not change its optimisations while it has state.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from streams.dsl.logical import (
    Graph,
    ProcessStep,
    RepartitionStep,
    SourceStep,
    Step,
    TableSourceStep,
    named_repartition,
)
from streams.errors import TopologyError
from streams.where import user_line

REUSE_SOURCE_TOPICS = "reuse.ktable.source.topics"
MERGE_REPARTITIONS = "merge.repartition.topics"
SELF_JOIN = "single.store.self.join"
ALL = frozenset({REUSE_SOURCE_TOPICS, MERGE_REPARTITIONS, SELF_JOIN})

Optimize = bool | str | Iterable[str]


def chosen(optimize: Optimize) -> frozenset[str]:
    """The names of the optimisations that the user asks for."""
    if isinstance(optimize, bool):
        return ALL if optimize else frozenset()
    given = optimize.split(",") if isinstance(optimize, str) else list(optimize)
    names = {name.strip() for name in given}
    if names == {"all"}:
        return ALL
    if names in ({"none"}, set()):
        return frozenset()
    unknown = sorted(names - ALL)
    if unknown:
        raise TopologyError(
            f'"{unknown[0]}" is not an optimisation',
            at=user_line(),
            hint="use True, False, or some of: " + ", ".join(sorted(ALL)),
        )
    return frozenset(names)


class Rewriting:
    """The steps of a graph while rules rewrite them; the graph itself stays as the user made it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps = list(graph.steps)
        self.parents = {step: list(step.parents) for step in graph.steps}

    def children(self, step: Step) -> list[Step]:
        """Steps that have it as parent, in order."""
        return [other for other in self.steps if step in self.parents[other]]

    def replace_parent(self, step: Step, old: Step, new: Step) -> None:
        """Let a step hang below another one."""
        self.parents[step] = [new if parent is old else parent for parent in self.parents[step]]

    def replace(self, old: Step, new: Step) -> None:
        """Put a step in the place of another one."""
        self.steps[self.steps.index(old)] = new
        self.parents[new] = self.parents.pop(old)
        for child in self.children(old):
            self.replace_parent(child, old, new)

    def remove(self, step: Step) -> None:
        """Take a step out; its children hang below its parents."""
        above = self.parents.pop(step)
        self.steps.remove(step)
        for child in self.children(step):
            rest = [parent for parent in self.parents[child] if parent is not step]
            at = self.parents[child].index(step)
            rest[at:at] = [parent for parent in above if parent not in rest]
            self.parents[child] = rest

    def above(self, step: Step) -> Iterator[Step]:
        """A step and everything above it, each once."""
        seen: set[Step] = set()
        waiting = [step]
        while waiting:
            found = waiting.pop()
            if found not in seen:
                seen.add(found)
                waiting += self.parents[found]
                yield found


def rewrite(graph: Graph, optimisations: frozenset[str]) -> Rewriting:
    """Apply the rules."""
    rewriting = Rewriting(graph)
    merge_equal_sources(rewriting)
    if SELF_JOIN in optimisations:
        rewrite_self_joins(rewriting)
    if MERGE_REPARTITIONS in optimisations:
        merge_repartitions(rewriting)
    return rewriting


def merge_equal_sources(rewriting: Rewriting) -> None:
    """Sources of the same topics become the first of them."""
    first_of: dict[object, SourceStep | TableSourceStep] = {}
    for step in list(rewriting.steps):
        topics: list[object] = []
        match step:
            case TableSourceStep() | SourceStep(pattern=None):
                topics += [step.topic] if isinstance(step, TableSourceStep) else step.topics
            case SourceStep(pattern=re.Pattern() as pattern):
                topics.append((pattern.pattern, pattern.flags))
            case _:
                continue
        known = [first_of[topic] for topic in topics if topic in first_of]
        for topic in topics:
            first_of.setdefault(topic, step)
        if known:
            _merge_source(rewriting, known[0], step)


def _merge_source(
    rewriting: Rewriting,
    first: SourceStep | TableSourceStep,
    step: SourceStep | TableSourceStep,
) -> None:
    if isinstance(first, TableSourceStep) or isinstance(step, TableSourceStep):
        table = first if isinstance(first, TableSourceStep) else step
        assert isinstance(table, TableSourceStep)
        raise TopologyError(
            f'topic "{table.topic}" is read twice, and not both times as a stream',
            at=step.where,
            hint="read it once; a table has to_stream(), a stream has to_table()",
        )
    if set(first.topics) != set(step.topics):
        raise TopologyError(
            f"two streams read overlapping but different topics: {sorted(first.topics)} and "
            f"{sorted(step.topics)}",
            at=step.where,
            hint="read each topic as one stream and merge() them",
        )
    if None not in (first.offset_reset, step.offset_reset) and (
        first.offset_reset != step.offset_reset
    ):
        raise TopologyError(
            "two streams of the same topics have different offset resets",
            at=step.where,
            hint="use the same for both, or set only one",
        )
    first.offset_reset = first.offset_reset or step.offset_reset
    for child in rewriting.children(step):
        rewriting.replace_parent(child, step, first)
    rewriting.remove(step)


def rewrite_self_joins(rewriting: Rewriting) -> None:
    """Joins of a stream with itself keep one window."""
    for join in rewriting.graph.self_joins:
        if rewriting.parents[join.left] == rewriting.parents[join.right]:
            for step in join.dropped:
                rewriting.remove(step)
            rewriting.replace(join.merge, join.joined)
            rewriting.parents[join.joined] = [join.left]


def merge_repartitions(rewriting: Rewriting) -> None:
    """All repartitions below one change of keys become one, right after it.

    Not those with a change of values on the way: the topic would hold other values.
    """
    by_changer: dict[Step, list[RepartitionStep]] = {}
    for step in rewriting.steps:
        if isinstance(step, ProcessStep) and step.changes_key:
            by_changer[step] = []
        elif isinstance(step, RepartitionStep) and not step.explicit:
            changer = _find_above(rewriting, step, _changes_key)
            if changer is not None and changer is _find_above(rewriting, step, _changes_record):
                by_changer[changer].append(step)
    _move_below_merges(rewriting, by_changer)
    for changer, repartitions in by_changer.items():
        # One that gets records past this change of keys, too, stays where it is.
        movable = [r for r in repartitions if _all_pass(rewriting, r, changer)]
        if movable:
            _merge_below(rewriting, changer, movable)


def _changes_key(step: Step) -> bool:
    return isinstance(step, ProcessStep) and step.changes_key


def _changes_record(step: Step) -> bool:
    return isinstance(step, ProcessStep) and (step.changes_key or not step.keeps_values)


def _find_above(rewriting: Rewriting, step: Step, wanted: Callable[[Step], bool]) -> Step | None:
    """A step itself or the nearest above it; after a merge, on the last way that has any."""
    known: dict[Step, Step | None] = {}  # ways may meet again above: each is walked once

    def find(step: Step) -> Step | None:
        if wanted(step):
            return step
        if step not in known:
            known[step] = None
            for parent in rewriting.parents[step]:
                if wanted(parent):
                    known[step] = parent
                    break
                known[step] = find(parent)
        return known[step]

    return find(step)


def _all_pass(rewriting: Rewriting, step: Step, through: Step) -> bool:
    """Whether every way up from a step leads through another one."""
    seen = {through}
    waiting = [step]
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        parents = rewriting.parents[found]
        if not parents:
            return False
        waiting += parents
    return True


def _move_below_merges(rewriting: Rewriting, by_changer: dict[Step, list[RepartitionStep]]) -> None:
    """A merge between changes of keys and all their repartitions takes the changers' place."""
    for merge in [s for s in rewriting.steps if isinstance(s, ProcessStep) and s.merges]:
        above = set(rewriting.above(merge))
        moved: list[RepartitionStep] = []
        for changer, repartitions in list(by_changer.items()):
            if changer in above and all(merge in rewriting.above(r) for r in repartitions):
                moved += [r for r in repartitions if r not in moved]
                del by_changer[changer]
        by_changer[merge] = moved


def _merge_below(rewriting: Rewriting, changer: Step, repartitions: list[RepartitionStep]) -> None:
    first = repartitions[0]
    merged = named_repartition(
        changer,
        first.topic,
        key_serde=next((r.key_serde for r in repartitions if r.key_serde is not None), None),
        value_serde=next((r.value_serde for r in repartitions if r.value_serde is not None), None),
    )
    merged.where = first.where
    for repartition in repartitions:
        child = _find_above(
            rewriting, repartition, lambda found: changer in rewriting.parents[found]
        )
        assert child is not None, "a repartition hangs below its change of keys"
        rewriting.replace_parent(child, changer, merged)
        if child is repartition:
            rewriting.parents[repartition] = [merged]
        rewriting.remove(repartition)
    rewriting.parents[merged] = [changer]
    rewriting.steps.insert(rewriting.steps.index(changer) + 1, merged)
