"""Golden plans: files with statements, a line ----, and the plans that they must give."""

from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parents[2] / "cases" / "plans"
BETWEEN = "\n====\n"


@dataclass(frozen=True, slots=True)
class GoldenPlan:
    """Some statements and the text of the last query's plan; the first line says what is shown."""

    title: str
    statements: str
    plan: str

    def __str__(self) -> str:
        """As the file has it."""
        return f"-- {self.title}\n{self.statements}\n----\n{self.plan}"


def read_plans(file: Path) -> list[GoldenPlan]:
    """The plans of a file."""
    found = []
    for block in file.read_text().strip().split(BETWEEN):
        before, _, plan = f"{block.strip()}\n".partition("\n----\n")
        title, _, statements = before.partition("\n")
        found.append(GoldenPlan(title.removeprefix("-- "), statements, plan.strip()))
    return found


def write_plans(file: Path, plans: list[GoldenPlan]) -> None:
    """Rewrite a file."""
    file.write_text(BETWEEN.join(map(str, plans)) + "\n")
