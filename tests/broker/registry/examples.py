"""Schemas that the tests of the registry use."""

import json
from collections.abc import Sequence

import pytest

from broker.errors import RegistryError
from broker.serde.schema.schema import Reference, Schema


def record(*fields: str, name: str = "Order") -> Schema:
    """An Avro record of integers; all fields have defaults, so that any two are compatible."""
    return Schema(_text(name, [{"name": each, "type": "int", "default": 0} for each in fields]))


def strict(*fields: str, name: str = "Order") -> Schema:
    """An Avro record of integers without defaults."""
    return Schema(_text(name, [{"name": each, "type": "int"} for each in fields]))


def referring(named: str, subject: str, version: int, name: str = "Outer") -> Schema:
    """An Avro record with a field of a type that is registered elsewhere."""
    fields: list[object] = [{"name": "inner", "type": named}]
    return Schema(_text(name, fields), references=(Reference(named, subject, version),))


def _text(name: str, fields: Sequence[object]) -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields}, separators=(",", ":"))


class Refusal:
    """`with refused(40401, "Subject 'a' not found."):` - the code and the exact message."""

    def __init__(self, code: int, message: str | None) -> None:
        self._code = code
        self._message = message
        self._raises = pytest.raises(RegistryError)

    def __enter__(self) -> None:
        self._found = self._raises.__enter__()

    def __exit__(self, *ending: object) -> bool:
        taken = bool(self._raises.__exit__(*ending))  # type: ignore[arg-type]
        if taken:
            assert self._found.value.code == self._code, self._found.value
            if self._message is not None:
                assert self._found.value.message == self._message
        return taken


def refused(code: int, message: str | None = None) -> Refusal:
    """Expect the registry to refuse."""
    return Refusal(code, message)
