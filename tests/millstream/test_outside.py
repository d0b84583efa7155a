"""The check of who takes time, randomness, files or sockets from the system finds them."""

import ast

import pytest

from tests.support.outside import complaints, uses


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import time\ntime.sleep(1)", "time"),
        ("from time import monotonic", "time"),
        ("import threading", "threads"),
        ("from concurrent.futures import ThreadPoolExecutor", "threads"),
        ("import random\nrandom.random()", "randomness"),
        ("from uuid import uuid4", "randomness"),
        ("import os as system\nsystem.replace('a', 'b')", "files"),
        ("open('a')", "files"),
        ("Path('a').read_text()", "files"),
        ("import socket", "network"),
        ("datetime.now()", "time"),
    ],
)
def test_what_comes_from_the_system_is_found(source: str, kind: str) -> None:
    assert [found for _, _, found in uses(ast.parse(source))] == [kind]


def test_what_is_given_is_fine() -> None:
    source = "from random import Random\nimport os\nRandom(1).random()\nos.path.join('a', 'b')"
    assert not list(uses(ast.parse(source)))


@pytest.mark.slow
def test_no_module_uses_the_operating_system_directly() -> None:
    assert not list(complaints())
