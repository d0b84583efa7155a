"""From a statement to a plan."""

from sql.planner.planner import PlannedQuery, Planner

__all__ = ["PlannedQuery", "Planner"]
