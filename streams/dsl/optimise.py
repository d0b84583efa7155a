"""Rules that rewrite steps before they become nodes.

Always: sources of the same topics are merged. On request: the topic of a source table serves as its
changelog; the repartitions below one key-changing step are merged, right after that step; a join of
a stream with itself has one window store instead of two. Each of these changes internal topics, so
an application must not change its optimisations while it has state.
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


def parse_optimisations(optimize: Optimize) -> frozenset[str]:
    """The names of the optimisations that the user has chosen."""
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
    """The steps of a graph while rules rewrite them; the graph itself does not change."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps = list(graph.steps)
        self.parents = {step: list(step.parents) for step in graph.steps}

    def children(self, step: Step) -> list[Step]:
        """The steps that have this one as a parent, in order."""
        return [other for other in self.steps if step in self.parents[other]]

    def replace_parent(self, step: Step, old: Step, new: Step) -> None:
        """Change a parent of a step."""
        self.parents[step] = [new if parent is old else parent for parent in self.parents[step]]

    def replace(self, old: Step, new: Step) -> None:
        """Replace a step with another one."""
        self.steps[self.steps.index(old)] = new
        self.parents[new] = self.parents.pop(old)
        for child in self.children(old):
            self.replace_parent(child, old, new)

    def remove(self, step: Step) -> None:
        """Remove a step; its parents become the parents of its children."""
        above = self.parents.pop(step)
        self.steps.remove(step)
        for child in self.children(step):
            rest = [parent for parent in self.parents[child] if parent is not step]
            at = self.parents[child].index(step)
            rest[at:at] = [parent for parent in above if parent not in rest]
            self.parents[child] = rest

    def above(self, step: Step) -> Iterator[Step]:
        """A step and all steps above it, without duplicates."""
        seen: set[Step] = set()
        waiting = [step]
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                waiting += self.parents[current]
                yield current


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
    """Merge sources of the same topics into the first one."""
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
            f'topic "{table.topic}" is read twice, and at least once as a table',
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
    """Rewrite joins of a stream with itself, so that they have one window store."""
    for join in rewriting.graph.self_joins:
        if rewriting.parents[join.left] == rewriting.parents[join.right]:
            for step in join.dropped:
                rewriting.remove(step)
            rewriting.replace(join.merge, join.joined)
            rewriting.parents[join.joined] = [join.left]


def merge_repartitions(rewriting: Rewriting) -> None:
    """Merge all repartitions below one key-changing step into one, right after that step.

    Except those below a change of values, because the topic would have other values.
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
        # A repartition that also gets records from elsewhere is not moved.
        movable = [r for r in repartitions if _all_paths_pass(rewriting, r, changer)]
        if movable:
            _merge_below(rewriting, changer, movable)


def _changes_key(step: Step) -> bool:
    return isinstance(step, ProcessStep) and step.changes_key


def _changes_record(step: Step) -> bool:
    return isinstance(step, ProcessStep) and (step.changes_key or not step.keeps_values)


def _find_above(rewriting: Rewriting, step: Step, predicate: Callable[[Step], bool]) -> Step | None:
    """The step itself or the nearest one above it; above a merge, on the last path that has one."""
    known: dict[Step, Step | None] = {}  # paths may meet again above: each step is visited once

    def find(step: Step) -> Step | None:
        if predicate(step):
            return step
        if step not in known:
            known[step] = None
            for parent in rewriting.parents[step]:
                if predicate(parent):
                    known[step] = parent
                    break
                known[step] = find(parent)
        return known[step]

    return find(step)


def _all_paths_pass(rewriting: Rewriting, step: Step, through: Step) -> bool:
    """Whether every path upwards from a step leads through another one."""
    seen = {through}
    waiting = [step]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        parents = rewriting.parents[current]
        if not parents:
            return False
        waiting += parents
    return True


def _move_below_merges(rewriting: Rewriting, by_changer: dict[Step, list[RepartitionStep]]) -> None:
    """Treat a merge between key-changing steps and all their repartitions as the changer."""
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
            rewriting, repartition, lambda above: changer in rewriting.parents[above]
        )
        assert child is not None, "a repartition is below its key-changing step"
        rewriting.replace_parent(child, changer, merged)
        if child is repartition:
            rewriting.parents[repartition] = [merged]
        rewriting.remove(repartition)
    rewriting.parents[merged] = [changer]
    rewriting.steps.insert(rewriting.steps.index(changer) + 1, merged)
