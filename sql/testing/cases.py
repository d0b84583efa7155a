"""Cases: tests of SQL, as in their JSON files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from broker.errors import MillstreamError

# Any: any JSON value; numbers with a point are Decimal.
CaseData = Mapping[str, Any]


class CaseKind(Enum):
    """How a case is run."""

    QUERY = "query"  # statements, inputs, outputs
    SCRIPT = "script"  # one script with ASSERT statements
    REST = "rest"  # through the HTTP API


@dataclass(frozen=True, slots=True)
class Case:
    """One test."""

    id: str
    kind: CaseKind
    data: CaseData
    # The folders of RUN SCRIPT.
    folders: tuple[Path, ...] = ()


def load_cases(
    paths: Iterable[Path], only: str | None = None, *, scripts: Iterable[Path] = ()
) -> list[Case]:
    """The cases of files and folders, in the order of their names; `only` is a pattern of ids.

    RUN SCRIPT looks for files beside the cases, and in the folders `scripts`.
    """
    folders = tuple(scripts)
    found = [case for path in paths for file in _files(path) for case in _cases(file, folders)]
    return found if only is None else [case for case in found if fnmatchcase(case.id, only)]


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(path.glob("*.json"))
    elif path.exists():
        yield path
    else:
        raise MillstreamError(f'"{path}" does not exist', hint="pass a file of cases or a folder")


def _cases(file: Path, scripts: tuple[Path, ...]) -> Iterator[Case]:
    try:
        with file.open(encoding="utf-8") as text:
            data = json.load(text, parse_float=Decimal)
        for case in data["cases"]:
            yield Case(case["id"], _kind(case), case, (file.parent, *scripts))
    except (ValueError, KeyError, TypeError) as error:
        raise MillstreamError(
            f"this is not a file of cases: {error!r}",
            at=str(file),
            hint='it must be {"cases": [{"id": ..., "statements": [...], ...}]}',
        ) from error


def _kind(case: CaseData) -> CaseKind:
    if "sql" in case:
        return CaseKind.SCRIPT
    return CaseKind.REST if "responses" in case else CaseKind.QUERY
