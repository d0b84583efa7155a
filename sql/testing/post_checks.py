"""Checks after a case has run: the existing sources and topics."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from sql.analyse.sources import definitions_schema
from sql.catalog import FormatInfo
from sql.parse import parse_statement
from sql.schema import Schema
from sql.syntax.statements import CreateSource
from sql.testing.engine import TestEngine
from sql.testing.failures import CaseFailed

INTERNAL_PREFIX = "_confluent-ksql-"


def check_post(
    engine: TestEngine, post: Mapping[str, Any] | None, internal: Collection[str]
) -> None:
    """CaseFailed if anything differs from the case."""
    if not post:
        return
    for expected in post.get("sources") or ():
        _check_source(engine, expected)
    topics = post.get("topics") or {}
    forbidden = topics.get("forbidden_regex")
    if forbidden is not None:
        for name in (*engine.topics, *internal):
            if re.search(forbidden, name):
                raise CaseFailed(f'topic "{name}" exists but must not')
    for expected in topics.get("required") or ():
        _check_topic(engine, expected)


def _check_source(engine: TestEngine, expected: Mapping[str, Any]) -> None:
    name = expected["name"]
    source = engine.catalog.sources.get(name)
    if source is None:
        raise CaseFailed(f"there is no stream or table {name}")
    _equal(name, "type", source.kind.value, expected["type"].upper())
    if "schema" in expected:
        _equal(name, "schema", plain(source.schema), plain(written_schema(expected["schema"])))
    key = expected.get("key_format")
    if key is not None:
        window = source.window
        _equal(name, "key format", source.key_format.name, key["format"])
        _equal(name, "window", None if window is None else window.kind.value, key["window_type"])
        size_ms = None if window is None else window.size_ms
        _equal(name, "window size", size_ms, key["window_size_ms"])
    if "value_format" in expected:
        _equal(name, "value format", source.value_format.name, expected["value_format"])
    for side, format_ in (("key", source.key_format), ("value", source.value_format)):
        if f"{side}_features" in expected:
            wanted = sorted(expected[f"{side}_features"])
            _equal(name, f"{side} features", features(format_), wanted)
    if "is_source" in expected:
        _equal(name, "is_source", source.is_source, expected["is_source"])


def _check_topic(engine: TestEngine, expected: Mapping[str, Any]) -> None:
    name = expected["name"]
    if name.startswith(INTERNAL_PREFIX):
        return  # an engine has internal topics of its own
    if name not in engine.topics:
        raise CaseFailed(f'there is no topic "{name}"')
    found = [each for each in engine.catalog.sources.values() if each.topic == name]
    if not found:
        return
    source = found[-1]
    for side, format_ in (("key", source.key_format), ("value", source.value_format)):
        wanted = expected.get(f"{side}_format")
        if wanted is not None:
            _equal(name, f"{side} format", format_.name, wanted["format"])
            _equal(name, f"{side} features", features(format_), sorted(wanted["features"]))
        schema = expected.get(f"{side}_schema")
        if schema is not None:
            _check_schema(engine, f"{name}-{side}", schema)
    if expected.get("partitions") is not None:
        _equal(name, "partitions", engine.topics[name].partitions, expected["partitions"])


def _check_schema(engine: TestEngine, subject: str, expected: object) -> None:
    text = engine.registry.version(subject).schema.text
    if isinstance(expected, str) and ("syntax" in expected or "message" in expected):
        _equal(subject, "schema", text.split(), expected.split())
    else:
        _equal(subject, "schema", json.loads(text), expected)


def features(format_: FormatInfo) -> list[str]:
    """The serde features of a single column, by their names."""
    if format_.wrapped is None:
        return []
    return ["WRAP_SINGLES" if format_.wrapped else "UNWRAP_SINGLES"]


def written_schema(text: str) -> Schema:
    """The schema of a column list in statements."""
    kind = "TABLE" if " PRIMARY KEY" in text else "STREAM"
    statement = parse_statement(f"CREATE {kind} S ({text}) WITH (KAFKA_TOPIC='t');")
    assert isinstance(statement, CreateSource)
    return definitions_schema(statement.columns, {})


def plain(schema: Schema) -> str:
    """A schema as a string, without the names of key columns."""
    return str(schema)


def _equal(name: str, what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise CaseFailed(f"{what} of {name} is {actual}, expected {expected}")
