"""Rules of topics' names: which are hidden, and which nobody may write to."""

import re
from functools import cache


@cache
def _pattern(patterns: str) -> re.Pattern[str]:
    return re.compile(
        "|".join(f"(?:{each.strip()})" for each in patterns.split(",") if each.strip())
    )


def matches_any(topic: str, patterns: str) -> bool:
    """Whether a topic's whole name matches one of the patterns, which commas separate."""
    return bool(patterns.strip()) and _pattern(patterns).fullmatch(topic) is not None
