"""Settings are declared and checked as Kafka declares and checks them, to the letter."""

import pytest

from tests.connect.definitions import DEFINITIONS, VALIDATIONS, facts, read, validated
from tests.connect.transforms.notation import Json


@pytest.mark.parametrize("name", read(DEFINITIONS))
def test_settings_are_those_of_kafka(name: str) -> None:
    ours = {each["name"]: each for each in facts(name)}
    kafkas = {each["name"]: each for each in read(DEFINITIONS)[name]}
    assert list(ours) == list(kafkas)
    for setting, found in ours.items():
        assert found == kafkas[setting], setting


@pytest.mark.parametrize("case", read(VALIDATIONS), ids=lambda case: str(case["name"]))
def test_a_configuration_gets_kafkas_answer(case: Json) -> None:
    assert validated(case["validate"], case["config"]) == case["answer"]
