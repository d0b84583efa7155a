"""Mutation: a defect that tests can switch on; modules named `*mutations.py` register theirs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from millstream.simulation.scenario import (
    APPLICATION,
    SERVERS,
    Scenario,
    core_scenario_of,
    scenario_with,
)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A defect that can be switched on."""

    name: str
    applied: Callable[[], Any]  # a context manager
    needs: tuple[str, ...] = ()  # actors and faults without which it cannot show
    found_in: int | None = None  # a seed that finds it

    def scenario(self, seed: int, minutes: float) -> Scenario:
        """The scenario of a seed, with the application or server that it needs, if it needs one."""
        for part in (APPLICATION, *SERVERS):
            if part in self.needs:
                return scenario_with(seed, part, minutes=minutes)
        return core_scenario_of(seed, minutes=minutes)

    def can_show_in(self, scenario: Scenario) -> bool:
        """Whether a scenario has the actors and faults."""
        names = [*scenario.actors, *(fault.kind for fault in scenario.faults)]
        return all(any(wanted in name for name in names) for wanted in self.needs)


MUTATIONS: list[Mutation] = []


def mutation(
    name: str, needs: tuple[str, ...] | str = (), found_in: int | None = None
) -> Callable[[Callable[[], Iterator[None]]], None]:
    """Register a generator that changes the product until it goes on."""
    wanted = (needs,) if isinstance(needs, str) else needs

    def register(change: Callable[[], Iterator[None]]) -> None:
        MUTATIONS.append(Mutation(name, contextmanager(change), wanted, found_in))

    return register


def all_mutations() -> list[Mutation]:
    """Those of all modules beside this one."""
    for path in sorted(Path(__file__).parent.glob("*mutations.py")):
        if not path.stem.startswith("test_"):
            import_module(f"{__package__}.{path.stem}")
    return MUTATIONS
