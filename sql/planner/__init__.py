"""The planner: converts statements to plans."""

from sql.planner.explaining import explain_text
from sql.planner.plan_json import plan_from_json, plan_to_json
from sql.planner.planner import PlannedQuery, Planner

__all__ = ["PlannedQuery", "Planner", "explain_text", "plan_from_json", "plan_to_json"]
