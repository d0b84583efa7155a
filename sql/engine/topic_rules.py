"""Topic name rules: which topics are hidden, and which are read-only."""

from functools import cache

from broker.linear_patterns import Pattern, compile_pattern


@cache
def _pattern(patterns: str) -> Pattern:
    return compile_pattern(
        "|".join(f"(?:{each.strip()})" for each in patterns.split(",") if each.strip())
    )


def matches_any(topic: str, patterns: str) -> bool:
    """Whether a topic's whole name matches one of the patterns, which commas separate."""
    return bool(patterns.strip()) and _pattern(patterns).fullmatch(topic) is not None
