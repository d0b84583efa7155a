"""The files of values in a schema of generated records: "options": {"file": "a.json"}."""

import json
from collections.abc import Iterator
from pathlib import Path


def files_of_schema(text: str) -> list[str]:
    """The files that a schema uses; none if it is not JSON, which is reported elsewhere."""
    try:
        return list(dict.fromkeys(_files(json.loads(text))))
    except (ValueError, RecursionError):
        return []


def files_of_schema_file(path: str) -> list[str]:
    """The files that the schema in a file uses."""
    try:
        return files_of_schema(Path(path).read_text())
    except (OSError, ValueError):
        return []


def _files(node: object) -> Iterator[str]:
    """Every "file" of "options", at any depth."""
    if isinstance(node, list):
        for each in node:
            yield from _files(each)
    elif isinstance(node, dict):
        options = node.get("options")
        if isinstance(options, dict) and "file" in options:
            yield str(options["file"])
        for each in node.values():
            yield from _files(each)
