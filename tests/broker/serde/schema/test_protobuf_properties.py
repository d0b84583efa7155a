"""Properties of Protobuf schemas: descriptors and texts are each other's image; nothing escapes."""

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from broker.errors import SchemaError
from broker.serde.schema.protobuf_schema import ProtobufSchema, parse_protobuf
from tests.broker.serde.schema.protobuf_strategies import files

pytestmark = pytest.mark.slow

PIECES = (
    'syntax = "proto3";',
    'syntax = "proto2";',
    "package a.b;",
    'import "google/protobuf/timestamp.proto";',
    'import public "confluent/meta.proto";',
    "message M {",
    "enum E { A = 0; }",
    "oneof o {",
    "optional group G = 4 {",
    "extend google.protobuf.FieldOptions {",
    "}",
    "int32 a = 1;",
    "optional string b = 2 [default = 'x', (confluent.field_meta).tags = \"PII\"];",
    "map<string, M> m = 3;",
    "repeated .a.b.M r = 0x10;",
    "reserved 5 to max, 7;",
    'reserved "x";',
    "extensions 100 to 200;",
    "option deprecated = true;",
    'option (confluent.message_meta) = { doc: "d" params: [{key: "k" value: "v"}] };',
    "service S { rpc R (M) returns (stream M); }",
    "// comment\n",
    "/* comment */",
    "-1",
    "99999999999999999999999",
    "[",
    "{",
    "\x00",
    "\\",
    "é",
)


def only_a_schema_error(text: str) -> ProtobufSchema | None:
    try:
        return parse_protobuf(text, {})
    except SchemaError:
        return None


@given(files())
def test_a_descriptor_is_the_same_after_it_was_printed_and_parsed(
    file: FileDescriptorProto,
) -> None:
    schema = parse_protobuf(base64.b64encode(file.SerializeToString()).decode(), {})
    assert schema.file == file
    assert parse_protobuf(schema.canonical, {}).file == file


@given(files())
def test_texts_are_stable(file: FileDescriptorProto) -> None:
    schema = parse_protobuf(base64.b64encode(file.SerializeToString()).decode(), {})
    again = parse_protobuf(schema.canonical, {})
    assert again.canonical == schema.canonical
    assert parse_protobuf(schema.formatted("serialized"), {}).canonical == schema.canonical
    normal = schema.normalized()
    assert parse_protobuf(normal, {}).normalized() == normal


@given(files())
def test_messages_are_found_by_their_places(file: FileDescriptorProto) -> None:
    schema = parse_protobuf(base64.b64encode(file.SerializeToString()).decode(), {})
    for name in schema.message_names:
        indexes = schema.indexes_of(name)
        assert schema.name_at(indexes) == name
        assert schema.message_class(indexes).DESCRIPTOR.full_name == name


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=15))
def test_any_text_is_a_schema_or_a_schema_error(pieces: list[str]) -> None:
    schema = only_a_schema_error(" ".join(pieces))
    if schema is not None:
        assert parse_protobuf(schema.canonical, {}).canonical == schema.canonical
        normal = schema.normalized()
        assert parse_protobuf(normal, {}).normalized() == normal


@given(st.text())
@example("\ud800")
@example("\ufeff")
@example("AAAA")
@example("Cg==")
def test_any_characters_are_a_schema_or_a_schema_error(text: str) -> None:
    only_a_schema_error(text)


@given(files(), st.data())
def test_a_broken_text_is_a_schema_or_a_schema_error(
    file: FileDescriptorProto, data: st.DataObject
) -> None:
    text = parse_protobuf(base64.b64encode(file.SerializeToString()).decode(), {}).canonical
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 10)))
    schema = only_a_schema_error(text[:start] + data.draw(st.text(max_size=4)) + text[end:])
    if schema is not None:
        assert parse_protobuf(schema.canonical, {}).canonical == schema.canonical


@given(files(), st.data())
def test_broken_bytes_are_a_schema_or_a_schema_error(
    file: FileDescriptorProto, data: st.DataObject
) -> None:
    content = bytearray(file.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
    schema = only_a_schema_error(base64.b64encode(content).decode())
    if schema is not None:
        assert parse_protobuf(schema.canonical, {}).canonical == schema.canonical


@given(st.binary(max_size=60))
def test_any_bytes_in_base64_are_a_schema_or_a_schema_error(content: bytes) -> None:
    only_a_schema_error(base64.b64encode(content).decode())
