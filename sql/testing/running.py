"""Runs cases one after the other, or in several processes if there are many."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from multiprocessing import get_context

from sql.functions.builtin import builtin_functions
from sql.functions.registry import FunctionRegistry
from sql.functions.user import registry_with
from sql.testing.cases import Case, CaseKind
from sql.testing.failures import CaseFailed
from sql.testing.query_cases import run_query_case
from sql.testing.rest_cases import run_rest_case
from sql.testing.results import CaseResult, Status
from sql.testing.script_cases import run_script_case

# Fewer cases are finished before other processes have started.
CASES_PER_PROCESS_MIN = 50
CHUNK = 10
REASON_MAX = 600


@dataclass(frozen=True, slots=True)
class TestFunctions:
    """The functions that cases may call, and a function that resets stateful ones."""

    __test__ = False  # the name begins with Test, but it is not a test

    registry: FunctionRegistry
    before_case: Callable[[], None] = field(default=lambda: None)


def run_cases(
    cases: Sequence[Case], *, functions: str | None = None, jobs: int | None = None
) -> Iterator[CaseResult]:
    """The results of cases, in their order; `functions` is a module with more functions."""
    count = jobs or min(os.cpu_count() or 1, len(cases) // CASES_PER_PROCESS_MIN)
    if count <= 1:
        known = functions_with(functions)
        for case in cases:
            yield run_case(case, known)
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(_run_in_process, functions), cases, chunksize=CHUNK)


_known: dict[str | None, TestFunctions] = {}


def _run_in_process(functions: str | None, case: Case) -> CaseResult:
    if functions not in _known:
        _known[functions] = functions_with(functions)
    return run_case(case, _known[functions])


def functions_with(module: str | None) -> TestFunctions:
    """The built-in functions, and those of the families in a module."""
    if module is None:
        return TestFunctions(builtin_functions())
    registry = registry_with([module])
    return TestFunctions(registry, getattr(import_module(module), "before_case", _nothing))


def _nothing() -> None:
    pass


def run_case(case: Case, functions: TestFunctions) -> CaseResult:
    """The result of one case."""
    functions.before_case()
    runs: dict[CaseKind, Callable[[Case, FunctionRegistry], None]] = {
        CaseKind.QUERY: run_query_case,
        CaseKind.SCRIPT: run_script_case,
        CaseKind.REST: run_rest_case,
    }
    with quiet():
        return outcome(case, lambda: runs[case.kind](case, functions.registry))


def outcome(case: Case, run: Callable[[], object]) -> CaseResult:
    """The result of a case that is run or checked."""
    try:
        run()
    except CaseFailed as failed:
        return CaseResult(case.id, Status.FAILED, _short(str(failed)))
    except Exception as error:  # a bug must not end the run
        return CaseResult(case.id, Status.FAILED, _short(f"{type(error).__name__}: {error!s}"))
    return CaseResult(case.id, Status.PASSED)


@contextmanager
def quiet() -> Iterator[None]:
    """Do not log records that a case expects to be dropped."""
    log = logging.getLogger("streams")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _short(text: str) -> str:
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]}..."
