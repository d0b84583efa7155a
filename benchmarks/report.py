"""Report: figures of two sides of one run and their ratios, as a table and as JSON."""

import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One comparison, or a figure without a peer."""

    name: str
    unit: str
    ours: float
    theirs: float | None
    peer: str
    higher_is_better: bool

    @property
    def ratio(self) -> float | None:
        """How many times better ours is; above 1 is better, also for times and memory."""
        if self.theirs is None or not self.ours or not self.theirs:
            return None
        return self.ours / self.theirs if self.higher_is_better else self.theirs / self.ours


@dataclass(slots=True)
class Report:
    """Collects figures, and shows them at the end."""

    title: str = "Millstream"
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    console: Console = field(default_factory=Console)

    def say(self, text: str) -> None:
        """Print progress to standard error."""
        print(text, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Add a note below the table, such as a skipped peer and the reason."""
        self.notes.append(text)
        self.say(f"   {text}")

    def add(
        self,
        name: str,
        unit: str,
        ours: float,
        theirs: float | None = None,
        *,
        peer: str = "",
        higher_is_better: bool = True,
    ) -> None:
        """Add one figure."""
        figure = Figure(name, unit, ours, theirs, peer, higher_is_better)
        self.figures.append(figure)
        ratio = "" if figure.ratio is None else f"  ratio {figure.ratio:.2f}"
        other = "" if theirs is None else f"  {peer} {theirs:,.2f}"
        self.say(f"   {name}: {ours:,.2f} {unit}{other}{ratio}")

    def show(self) -> None:
        """Print the table."""
        table = Table(title=self.title)
        for column in (
            "what",
            "unit",
            "Millstream",
            "peer",
            "peer's",
            "ratio (>1: ours is better)",
        ):
            table.add_column(column, justify="left" if column in ("what", "unit") else "right")
        for figure in self.figures:
            theirs = "" if figure.theirs is None else f"{figure.theirs:,.2f}"
            ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
            ours = f"{figure.ours:,.2f}"
            table.add_row(figure.name, figure.unit, ours, figure.peer, theirs, ratio)
        self.console.print(table)
        for note in self.notes:
            self.console.print(f"note: {note}")

    def write(self, path: Path) -> None:
        """Write all figures and notes as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "figures": [{**asdict(figure), "ratio": figure.ratio} for figure in self.figures],
            "notes": self.notes,
        }
        path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
        self.say(f"written to {path}")
