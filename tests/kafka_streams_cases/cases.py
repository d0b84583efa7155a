"""Finds and reads case files."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def files_of(path: Path) -> list[Path]:
    """The case files of a folder, or the one file."""
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


def read_cases(paths: list[Path], *, pattern: str = "", quirks: bool = False) -> Iterator[Case]:
    """Cases whose id has the pattern; those with a quirk only when asked for."""
    wanted = re.compile(pattern)
    for path in paths:
        for file in files_of(path):
            for case in json.loads(file.read_text(encoding="utf-8"))["cases"]:
                if wanted.search(case["id"]) and (quirks or "quirk" not in case):
                    yield case
