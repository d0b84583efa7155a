"""The recorded settings and validations against Kafka's own; REWRITE=1 writes Kafka's down."""

import os

import orjson
import pytest

from tests.connect.definitions import DEFINITIONS, VALIDATIONS, compared, read, without_words
from tests.support.kafka_connect import ask_kafka_connect

pytestmark = [pytest.mark.peer, pytest.mark.slow]


def test_kafka_declares_and_checks_settings_as_recorded() -> None:
    definitions, validations = read(DEFINITIONS), read(VALIDATIONS)
    answers = ask_kafka_connect([{"definition": name} for name in definitions] + validations)
    declared = {
        name: [without_words(key) for key in keys]
        for name, keys in zip(definitions, answers, strict=False)
    }
    checked = [
        {**case, "answer": compared(answer)}
        for case, answer in zip(validations, answers[len(definitions) :], strict=True)
    ]
    if os.environ.get("REWRITE"):
        DEFINITIONS.write_bytes(orjson.dumps(declared, option=orjson.OPT_INDENT_2) + b"\n")
        VALIDATIONS.write_bytes(orjson.dumps(checked, option=orjson.OPT_INDENT_2) + b"\n")
    assert (declared, checked) == (read(DEFINITIONS), read(VALIDATIONS))
