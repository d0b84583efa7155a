"""Texts that are no schemas are refused, whatever they are."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.errors import RegistryError
from broker.registry.registration import Registrar, Registration
from broker.registry.schema_parser import SchemaParser
from broker.registry.state import RegistryState
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Schema, SchemaKind

KINDS = st.sampled_from(list(SchemaKind))
WORDS = st.sampled_from(
    ["type", "record", "name", "fields", "string", "int", "items", "array", "properties", "$ref"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
PROTO = st.lists(
    st.sampled_from(
        ["syntax", "=", '"proto3"', ";", "message", "M", "{", "}", "int32", "x", "1", "option", "("]
    ),
    max_size=20,
).map(" ".join)


@pytest.mark.slow
@given(KINDS, st.text() | JSON.map(json.dumps) | PROTO)
@example(SchemaKind.AVRO, "[" * 50_000)
@example(SchemaKind.JSON, '{"not":' * 50_000)
@example(SchemaKind.PROTOBUF, "message M {" * 5_000)
@example(SchemaKind.AVRO, '{"type":"array","items":' * 3_000 + '"int"' + "}" * 3_000)
@example(SchemaKind.JSON, '{"not":' * 3_000 + "{}" + "}" * 3_000)
def test_a_text_of_any_kind_is_a_schema_or_refused(kind: SchemaKind, text: str) -> None:
    state = RegistryState()
    registrar = Registrar(state, SchemaParser(state), CompatibilityLevel.BACKWARD)
    with suppress(RegistryError):
        stored, records = registrar.register(Registration("a", Schema(text, kind)))
        for record in records:
            state.apply(record)
        # What is stored is a schema again, and the same one.
        again, nothing = registrar.register(Registration("a", stored.schema))
        assert (again, nothing) == (stored, [])
