"""The rules, in their order. EXPLAIN names those that have changed a plan.

A rule must not change results, their order and timestamps, or the names of stores and topics. A
query keeps the plan of its command permanently, so a new rule changes only later statements. Two
rules of other engines are missing, because no plan needs them: plans never move rows twice by one
key, since joins and GROUP BY know the key of their input; and no plan reads one source twice, since
sources cannot be joined with themselves. Decoding fewer columns of a topic would change results:
a record with an unreadable value is skipped, whether the column is used or not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sql.plan import PlanNode
from sql.planner import PlannedQuery
from sql.rewrite.prune_columns import prune_columns
from sql.rewrite.push_filters import push_filters


@dataclass(frozen=True, slots=True)
class Rule:
    """A named change of plans."""

    name: str
    rewrite: Callable[[PlanNode], PlanNode]


# Filters move first, so that columns that only they use are not stored.
RULES = (Rule("push_filters", push_filters), Rule("prune_columns", prune_columns))


def rewritten(planned: PlannedQuery, rules: Sequence[Rule] = RULES) -> PlannedQuery:
    """A query after all rules, with the names of those that changed its plan."""
    plan, names = planned.plan, []
    for rule in rules:
        before, plan = plan, rule.rewrite(plan)
        if plan != before:
            names.append(rule.name)
    return replace(planned, plan=plan, rules=tuple(names))
