"""Entities as text of a fixed width, as golden files; `REWRITE=1` rewrites them."""

import os
from pathlib import Path

import pytest
from rich.console import Console

from sql.engine import entities as en
from sql.engine.messages import TAGS
from sql.shell.lists import LISTS
from sql.shell.rendering import RULES, failed, rendered
from sql.shell.session import EntityJson
from tests.sql.shell.entities import ENTITIES
from tests.sql.shell.fakes import plain_screen

GOLDEN = Path(__file__).parents[2] / "cases" / "shell" / "entities.txt"
WIDTH = 80
BETWEEN = "\n====\n"


def shown(entity: EntityJson) -> str:
    screen, written = plain_screen(WIDTH)
    screen.show(rendered(entity, plain=True))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


@pytest.fixture(scope="module")
def golden() -> dict[str, str]:
    if os.environ.get("REWRITE"):
        blocks = [f"{name}\n{shown(entity)}" for name, entity in ENTITIES.items()]
        GOLDEN.write_text(BETWEEN.join(blocks) + "\n")
    blocks = GOLDEN.read_text().rstrip("\n").split(BETWEEN)
    return {name: text for name, _, text in (each.partition("\n") for each in blocks)}


@pytest.mark.parametrize("name", ENTITIES)
def test_an_entity_is_shown_as_its_golden_text(name: str, golden: dict[str, str]) -> None:
    text = shown(ENTITIES[name])
    assert text == golden[name]
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\x1b" not in text


def test_every_kind_of_entity_has_a_rule_and_a_golden_text() -> None:
    assert {*LISTS, *RULES} == set(TAGS.values())
    assert {each["@type"] for each in ENTITIES.values()} >= set(TAGS.values())
    assert len(TAGS) == len(en.Entity.__args__)


def test_only_a_status_of_error_is_a_failure() -> None:
    assert [name for name, each in ENTITIES.items() if failed(each)] == ["failed_status"]


@pytest.mark.parametrize("name", ENTITIES)
def test_a_terminal_gets_the_same_words_with_other_lines(name: str) -> None:
    console = Console(width=WIDTH, force_terminal=True, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(rendered(ENTITIES[name], plain=False))
    words = [each for each in capture.get().split() if each[0].isalnum()]
    plain = [each for each in shown(ENTITIES[name]).split() if each[0].isalnum()]
    assert words == plain


def test_an_entity_with_nothing_in_it_is_no_mistake() -> None:
    for tag in (*LISTS, *RULES):
        shown({"@type": tag})
