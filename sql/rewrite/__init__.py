"""The rewrite stage, between planner and backends: rules that make plans cheaper to run."""

from sql.rewrite.rules import RULES, Rule, rewritten

__all__ = ["RULES", "Rule", "rewritten"]
