"""Cases of schemas as JSON data."""

import json
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True, slots=True)
class CompatibilityCase:
    """Two schemas and the differences, as kind and path, in both directions."""

    name: str
    old: object
    new: object
    backward: list[str]
    forward: list[str]

    def __str__(self) -> str:
        """The id of the test."""
        return self.name


def compatibility_cases(file: str) -> list[CompatibilityCase]:
    """The cases of one file."""
    return [CompatibilityCase(**each) for each in json.loads((CASES / file).read_text())]
