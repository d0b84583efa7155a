"""Kafka's own converters, in Java: they read what ours write, and ours what they write."""

import base64
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from connect.converters.json_converter import JsonConverter
from connect.converters.primitives import StringConverter
from connect.converters.simple_header_converter import SimpleHeaderConverter
from connect.data import FLOAT64, STRING, ConnectSchema, Struct, Type, struct
from connect.errors import DataError
from tests.connect.converters.test_json_converter import BAD_DATA, SCHEMALESS
from tests.connect.converters.test_simple_header_converter import READ, WRITTEN
from tests.connect.converters.values import ABSENT, ADDRESS, PRESENT, Example, examples
from tests.support.apache_kafka import fetch_apache_kafka, java_command
from tests.support.peer import PeerMissing, skip_without_peer

pytestmark = [pytest.mark.slow, pytest.mark.peer]

SOURCE = Path(__file__).parents[2] / "support" / "java" / "Converters.java"
SETTINGS = [
    "",
    "decimal.format=NUMERIC",
    "replace.null.with.default=false",
    "schemas.enable=false",
]


class JavaConverters:
    """One JVM that answers every line with base64, - for nothing, or an error."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, kind: str, config: str, data: bytes) -> str:
        """What a converter of Java makes of some bytes."""
        sent, answers = self._process.stdin, self._process.stdout
        assert sent is not None
        assert answers is not None
        sent.write(f"{kind}|{config}|{base64.b64encode(data).decode()}\n")
        sent.flush()
        answer = answers.readline()
        assert answer, "the JVM ended"
        return answer.rstrip("\n")


@pytest.fixture(scope="module")
def java() -> Iterator[JavaConverters]:
    """Kafka's own converters."""
    try:
        command = java_command(fetch_apache_kafka().compile(SOURCE), "Converters")
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield JavaConverters(process)


@functools.cache
def converter(config: str) -> JsonConverter:
    """Our converter with the same settings."""
    made = JsonConverter()
    made.configure(dict(each.split("=") for each in config.split(",") if each), False)
    return made


def written(config: str, schema: ConnectSchema | None, value: object) -> bytes:
    """What ours writes."""
    data = converter(config).from_connect_data("t", (), schema, value)
    assert data is not None
    return data


def any_examples(count: int) -> list[Example]:
    """Many examples, always the same."""
    found: list[Example] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(examples())
    def collect(example: Example) -> None:
        found.append(example)

    collect()
    return found


def test_java_writes_again_what_it_read_from_us_and_we_read_that(java: JavaConverters) -> None:
    tried = [*PRESENT, *ABSENT, *any_examples(100)]
    # Java reads no schema whose default is a struct.
    with_defaults = [each for each in PRESENT if each.schema.type is not Type.STRUCT]
    fields = [each.schema.with_(optional=True, default=each.value) for each in with_defaults]
    defaults = struct("defaults", {f"f{place}": each for place, each in enumerate(fields)})
    tried.append(Example("defaults", defaults, Struct(defaults)))
    cases = [(config, each) for config in SETTINGS for each in tried if not lost_by_java(each)]
    for config, each in cases:
        ours = written(config, each.schema, each.value)
        answer = java.ask("json", config, ours)
        assert not answer.startswith("error"), (each, ours, answer)
        theirs = None if answer == "-" else base64.b64decode(answer)
        ours_again = converter(config).to_connect_data("t", (), theirs)
        assert ours_again == converter(config).to_connect_data("t", (), ours)
        if config != "schemas.enable=false":
            assert theirs is not None
            assert orjson.loads(theirs)["schema"] == orjson.loads(ours)["schema"]
        if config != "schemas.enable=false" and each.schema is not defaults:
            assert ours_again == (each.schema, each.value)


def lost_by_java(example: Example) -> bool:
    """Java writes infinities as strings, and reads strings as 0."""
    return b"Infinity" in written("", example.schema, example.value)


def test_plain_json_means_the_same_for_java(java: JavaConverters) -> None:
    for _, payload in SCHEMALESS:
        answer = java.ask("json", "schemas.enable=false", payload)
        assert orjson.loads(base64.b64decode(answer)) == orjson.loads(payload)


def test_java_refuses_the_same_bytes_in_the_same_words(java: JavaConverters) -> None:
    for data, _ in BAD_DATA:
        answer = java.ask("json", "", data)
        with pytest.raises(DataError) as failed:
            JsonConverter().to_connect_data("t", (), data)
        theirs = answer.removeprefix("error ")
        assert answer.startswith("error "), data
        assert failed.value.message.startswith(theirs.strip()), data


def test_java_shows_values_as_the_same_strings(java: JavaConverters) -> None:
    plain = [STRING, FLOAT64, ADDRESS]
    tried = [each for each in PRESENT if each.schema in plain or each.schema.type is Type.INT64]
    tried = [each for each in tried if each.schema.name is None or each.schema is ADDRESS]
    tried.append(Example("struct", ADDRESS, Struct(ADDRESS, ["Hill", None])))
    tried.append(Example("large", FLOAT64, 1.5e300))
    for each in tried:
        answer = java.ask("string", "", written("", each.schema, each.value))
        ours = StringConverter().from_connect_data("t", (), each.schema, each.value)
        assert base64.b64decode(answer) == ours, each


# Here Kafka drops a part of the text, or knows days that no calendar has.
LOSSY = {"12,5", "[1] x", "12:30", "2024-13-45"}


def test_java_infers_the_same_types_of_headers(java: JavaConverters) -> None:
    known = [each for each in READ if each[0] not in LOSSY and not each[0].startswith("[[[")]
    known = [each for each in known if not unwritable(each[1])]
    for text, schema, value in known:
        answer = java.ask("header", "", text.encode())
        if schema is None:
            assert answer == "-", text
        else:
            theirs = JsonConverter().to_connect_data("t", (), base64.b64decode(answer))
            assert theirs == (schema, value), text


def unwritable(schema: ConnectSchema | None) -> bool:
    """Java's JSON has no schemas for arrays and maps of nothing."""
    return (
        schema is not None
        and schema.type in (Type.ARRAY, Type.MAP)
        and (schema.value_schema is None)
    )


def test_java_writes_headers_as_the_same_strings(java: JavaConverters) -> None:
    headers = SimpleHeaderConverter()
    tried = [(schema, value) for _, schema, value in READ if schema and not unwritable(schema)]
    tried += [(ADDRESS, value) for value, _ in WRITTEN if isinstance(value, Struct)]
    for schema, value in tried:
        answer = java.ask("text", "", written("", schema, value))
        ours = headers.from_connect_header("t", "h", schema, value)
        assert base64.b64decode(answer) == ours, value
