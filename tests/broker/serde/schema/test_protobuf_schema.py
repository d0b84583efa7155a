"""Protobuf schemas: texts, descriptors in base64, imports, places of messages, clear errors."""

import base64
import time

import pytest
from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    FieldDescriptorProto,
    FileDescriptorProto,
)

from broker.errors import SchemaError
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.protobuf_schema import ProtobufSchema, parse_protobuf
from broker.serde.schema.schema import Schema, SchemaKind

ORDER = """\
// A comment goes.
syntax = "proto3";
package shop;
option java_package = "com" ".shop";
import public "google/protobuf/duration.proto"; import "google/protobuf/timestamp.proto";
enum Status { option allow_alias = true; reserved -5 to -2; UNKNOWN = 0; PAID = 0x1; DONE = 01; }
message Order {
  oneof payment { string card = 5; Cash cash = 6; }
  message Cash { int64 amount = 1 [json_name = 'a"b']; }
  google.protobuf.Timestamp at = 1; /* and this one */ repeated Status states = 2 [packed = true];
  map<string, Cash> by_name = 3;
  optional int32 count = 4 [deprecated = true, json_name = "n"];
  reserved 10, 20 to 30, 40 to max; reserved "old", "older";
}
service Orders { rpc Get (stream Order) returns (.shop.Order) { option deprecated = true; } }
"""

CANONICAL = """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";
import public "google/protobuf/duration.proto";

option java_package = "com.shop";

message Order {
  reserved 10;
  reserved 20 to 30;
  reserved 40 to max;
  reserved "old";
  reserved "older";

  google.protobuf.Timestamp at = 1;
  repeated Status states = 2 [packed = true];
  message Cash {
    int64 amount = 1 [json_name = "a\\"b"];
  }
  map<string, Cash> by_name = 3;
  optional int32 count = 4 [
    deprecated = true,
    json_name = "n"
  ];

  oneof payment {
    string card = 5;
    Cash cash = 6;
  }
}
enum Status {
  reserved -5 to -2;
  option allow_alias = true;
  UNKNOWN = 0;
  PAID = 1;
  DONE = 1;
}

service Orders {
  rpc Get (stream Order) returns (.shop.Order) {
    option deprecated = true;
  };
}
"""


def parse(text: str, **resolved: str) -> ProtobufSchema:
    return parse_protobuf(text, {f"{name}.proto": other for name, other in resolved.items()})


def proto3(text: str, **resolved: str) -> ProtobufSchema:
    return parse(f'syntax = "proto3"; {text}', **resolved)


def proto2(text: str) -> ProtobufSchema:
    return parse(f'syntax = "proto2"; {text}')


def test_a_text_is_printed_in_one_layout() -> None:
    assert parse(ORDER).canonical == CANONICAL
    assert parse(CANONICAL).canonical == CANONICAL


def test_a_schema_of_the_kind_protobuf_is_parsed_here() -> None:
    schema = parse_schema(Schema(ORDER, SchemaKind.PROTOBUF))
    assert schema.kind is SchemaKind.PROTOBUF
    assert schema.canonical == schema.formatted("") == CANONICAL
    assert schema.record_name() == "shop.Order"


def test_a_descriptor_in_base64_is_a_schema_too() -> None:
    serialized = parse(ORDER).formatted("serialized")
    file = FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert [message.name for message in file.message_type] == ["Order"]
    again = parse(serialized)
    assert again.normalized() == parse(ORDER).normalized()
    assert parse(again.canonical).canonical == again.canonical


def test_an_unknown_format_is_no_format() -> None:
    with pytest.raises(ValueError, match='no format "resolved"'):
        parse(ORDER).formatted("resolved")


def test_normalized_texts_are_equal_whatever_the_order() -> None:
    first = proto3(
        'package a; import "google/protobuf/timestamp.proto"; import "google/protobuf/any.proto";'
        'option java_package = "x"; option go_package = "y";'
        "message M { N n = 2; int32 a = 1; } message N {} enum E { X = 0; Z = 2; Y = 1; }"
    )
    second = proto3(
        'package a; import "google/protobuf/any.proto"; import "google/protobuf/timestamp.proto";'
        'option go_package = "y"; option java_package = "x";'
        "message M { int32 a = 1; .a.N n = 2; } message N {} enum E { X = 0; Y = 1; Z = 2; }"
    )
    assert first.canonical != second.canonical
    assert first.normalized() == second.normalized()
    assert "  .a.N n = 2;\n" in first.normalized()


def test_messages_have_places_and_classes() -> None:
    schema = proto3(
        "package p; message A { message B { message C { int32 x = 1; } } map<string, B> m = 1;"
        " message D {} } message E {}"
    )
    assert schema.message_names == ("p.A", "p.A.B", "p.A.B.C", "p.A.D", "p.E")
    # The entry of a map is a message like others, so D is the third one.
    places = [schema.indexes_of(name) for name in schema.message_names]
    assert places == [(0,), (0, 0), (0, 0, 0), (0, 2), (1,)]
    assert schema.default_message == "p.A"
    content = schema.message_class((0, 0, 0))(x=7).SerializeToString()
    assert schema.message_class("p.A.B.C").FromString(content).x == 7
    stored = parse(schema.canonical)
    assert [stored.indexes_of(name) for name in stored.message_names] == places


@pytest.mark.parametrize("place", [(), (2,), (0, 9), (-1,)])
def test_a_place_without_a_message_is_an_error(place: tuple[int, ...]) -> None:
    with pytest.raises(SchemaError, match="no message at"):
        parse(ORDER).message_class(place)


def test_an_unknown_message_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(SchemaError, match=r'no message "shop\.Other"\n  hint: it has shop'):
        parse(ORDER).indexes_of("shop.Other")
    with pytest.raises(SchemaError, match="no message"):
        parse(ORDER).message_class("Other")
    with pytest.raises(SchemaError, match="no messages"):
        _ = parse("").default_message
    assert parse("").record_name() is None


def test_two_schemas_may_have_different_messages_of_one_name() -> None:
    one, two = proto3("message M { int32 a = 1; }"), proto3("message M { string b = 1; }")
    assert one.message_class("M")(a=1).SerializeToString() == b"\x08\x01"
    assert two.message_class("M")(b="x").SerializeToString() == b"\x0a\x01x"


def test_imports_are_found_among_the_references() -> None:
    address = (
        'syntax = "proto3"; package geo; import "country.proto"; message Address { Land l = 1; }'
    )
    country = 'syntax = "proto3"; package geo; message Land { string code = 1; }'
    text = 'import "address.proto"; message M { geo.Address a = 1; }'
    schema = proto3(text, address=address, country=parse(country).formatted("serialized"))
    assert schema.file.message_type[0].field[0].type_name == ".geo.Address"
    assert list(schema.dependencies) == ["country.proto", "address.proto"]
    assert schema.message_class("geo.Land")(code="CH").code == "CH"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("google/protobuf/any.proto", "google.protobuf.Any"),
        ("google/protobuf/struct.proto", "google.protobuf.Struct"),
        ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp"),
        ("google/protobuf/wrappers.proto", "google.protobuf.Int32Value"),
        ("google/protobuf/descriptor.proto", "google.protobuf.FieldOptions"),
        ("google/type/date.proto", "google.type.Date"),
        ("google/type/timeofday.proto", "google.type.TimeOfDay"),
        ("confluent/type/decimal.proto", "confluent.type.Decimal"),
        ("confluent/type/variant.proto", "confluent.type.Variant"),
        ("confluent/types/decimal.proto", "confluent.type.Decimal"),
        ("confluent/meta.proto", "confluent.Meta"),
    ],
)
def test_known_files_need_no_reference(path: str, name: str) -> None:
    schema = proto3(f'import "{path}"; message M {{ {name} f = 1; }}')
    assert schema.message_class("M").DESCRIPTOR.fields[0].message_type.full_name == name


def test_custom_options_of_an_import_are_understood() -> None:
    schema = proto3(
        'import "confluent/meta.proto"; message M { string a = 1 [(confluent.field_meta) = '
        '{ tags: ["PII", "SECRET"] params: { key: "k" value: "v" } }];'
        'string b = 2 [(confluent.field_meta).tags = "PII", (confluent.field_meta).doc = "d"]; }'
    )
    assert (
        '  string b = 2 [(confluent.field_meta) = {\n    doc: "d",\n    tags: "PII"\n  }];\n'
    ) in schema.canonical
    options = schema.message_class("google.protobuf.FieldOptions")()
    options.ParseFromString(schema.file.message_type[0].field[0].options.SerializeToString())
    meta = options.Extensions[schema.pool.FindExtensionByName("confluent.field_meta")]
    assert list(meta.tags) == ["PII", "SECRET"]
    assert dict(meta.params) == {"k": "v"}
    assert parse(schema.formatted("serialized")).canonical == schema.canonical


def test_custom_options_that_nobody_declares_are_kept() -> None:
    text = (
        'message M {\n  string a = 1 [(mine).x = "y"];\n  string b = 2 [(mine) = { a : 1 }];\n}\n'
    )
    assert proto3(text).canonical == f'syntax = "proto3";\n\n{text}'


def test_custom_options_may_be_declared_in_the_same_file() -> None:
    schema = proto3(
        'package p; import "google/protobuf/descriptor.proto";'
        "extend google.protobuf.MessageOptions { repeated int32 level = 50000; }"
        "message M { option (level) = 1; option (p.level) = 2; }"
    )
    assert "  option (p.level) = 1;\n  option (p.level) = 2;\n" in schema.canonical


DEFAULTS = [
    ("int32", "0x1F", "31"),
    ("int64", "-9223372036854775808", "-9223372036854775808"),
    ("uint64", "18446744073709551615", "18446744073709551615"),
    ("sint32", "-017", "-15"),
    ("bool", "true", "true"),
    ("float", "0.1", "0.1"),
    ("double", "1e100", "1e+100"),
    ("double", "-inf", "-inf"),
    ("float", "3", "3"),
    ("string", r"'a\'\x41\102\n' \"\u00e9\"".replace('\\"', '"'), "a'AB\né"),
    ("bytes", r'"\000\xff"', r"\000\377"),
    ("E", "Y", "Y"),
]


@pytest.mark.parametrize(("kind", "written", "stored"), DEFAULTS)
def test_defaults_are_stored_as_descriptors_have_them(kind: str, written: str, stored: str) -> None:
    text = (
        f"message M {{ optional {kind} a = 1 [default = {written}]; }} enum E {{ X = 1; Y = 2; }}"
    )
    schema = proto2(text)
    assert schema.file.message_type[0].field[0].default_value == stored
    assert parse(schema.canonical).file == schema.file


def test_groups_and_extensions_of_proto2_are_understood() -> None:
    text = (
        'syntax = "proto2";\n\nmessage M {\n'
        "  repeated group Row = 1 {\n    required string url = 1;\n  }\n"
        "  oneof pick {\n    int32 x = 2;\n    group Other = 3 {\n      optional int32 y = 1;\n"
        "    }\n  }\n\n  extensions 100 to 200;\n  extensions 300;\n  extensions 400 to max;\n}\n\n"
        "extend M {\n  optional string more = 100;\n}\n"
    )
    schema = parse(text)
    assert schema.canonical == text
    assert schema.file.message_type[0].field[0].type == FieldDescriptorProto.TYPE_GROUP
    assert schema.message_names == ("M", "M.Row", "M.Other")


def test_keywords_may_be_names() -> None:
    text = (
        "message message { optional string message = 1; int32 optional = 2; int32 map = 3;"
        "int32 to = 4; oneof oneof { int32 group = 5; } int32 reserved = 6; syntax syntax = 7; }"
        "message syntax {} enum enum { option = 0; }"
    ).replace("option = 0", "max = 0")
    assert len(proto3(text).file.message_type[0].field) == 7


ERRORS = [
    ("message M {", "the text ends in the middle of a statement"),
    ("message M { int32 a 1; }", 'unexpected "1" in Protobuf text'),
    ('message M { string a = 1 [json_name = "x]; }', "unexpected"),
    ("message M { int32 a = 1; } }", 'unexpected "}"'),
    ("message M { Other a = 1; }", "couldn't resolve name 'Other'"),
    ("message M { int32 a = 1; int32 b = 1; }", "duplicate field number"),
    ("message M { int32 a = 1; int32 a = 2; }", "duplicate"),
    ("message M { int32 a = 0; }", "cannot have the number 0"),
    ("message M { int32 a = 536870912; }", "cannot have the number"),
    ("message M { int32 a = 99999999999; }", "too large"),
    (f"message M {{ int32 a = {'9' * 5000}; }}", "too large"),
    ("message M { int32 a = 09; }", "octal"),
    ("message M { required int32 a = 1; }", "proto3 has no required fields"),
    ("message M { int32 a = 1 [default = 5]; }", "proto3 has no default values"),
    ("message M { group G = 1 {} }", "groups are not allowed in proto3"),
    ("message M { map<float, int32> m = 1; }", "cannot be the type of keys"),
    ("message M { oneof o {} }", "has no fields"),
    ('message M { string a = 1 [json_name = "\\q"]; }', "unknown escape"),
    ("message M { int32 a = 1 [deprecated = 7]; }", "cannot set option"),
    ("enum E {}", "enum"),
    ("enum E { A = 1; }", "must be zero"),
    ("enum E { A = 99999999999; }", "too large"),
    ("message M {} message M {}", "duplicate symbol"),
    ('import "other.proto";', 'import "other.proto" is not found'),
    ('import "default.proto";', "is the file itself"),
    ('import "google/protobuf/any.proto"; import "google/protobuf/any.proto";', "twice"),
    ("package a; package b;", "more than one package"),
    (f"package {'a.' * 100}a;", "more than 100 parts"),
    ("".join(f'import "{i}.proto";' for i in range(1001)), "more than 1000 imports"),
    ("message A {" * 40 + "}" * 40, "nested more than 32 deep"),
    ("option (x) = " + "{ a " * 40 + "}" * 40 + ";", "nested more than 32 deep"),
    ("message A {" * 5_000, "the text ends"),
    ("option (x) = " + "{" * 5_000, "the text ends"),
    (" " * 1_000_001, "more than 1000000"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=lambda value: value[:40])
def test_what_is_wrong_is_a_schema_error(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        proto3(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('edition = "2023"; message M {}', 'edition "2023" is not supported'),
        ('syntax = "proto4";', '"proto4" is not supported'),
        ("message M { int32 a = 1; }", "must be optional, required or repeated in proto2"),
        ("AAAA", "neither a .proto file nor a descriptor"),
        ("Zm9v YmFy", "neither a .proto file nor a descriptor"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_schema_error(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_an_error_says_where_it_is() -> None:
    with pytest.raises(SchemaError) as caught:
        parse('syntax = "proto3";\nmessage M {\n  int32 a;\n}')
    assert caught.value.at == "line 3, column 10: int32 a;"


def test_files_that_import_each_other_are_refused() -> None:
    a = 'syntax = "proto3"; import "b.proto";'
    b = 'syntax = "proto3"; import "a.proto";'
    with pytest.raises(SchemaError, match="imports itself"):
        proto3('import "a.proto";', a=a, b=b)


def test_a_deep_chain_of_imports_is_refused() -> None:
    texts = {f"n{i}": f'syntax = "proto3"; import "n{i + 1}.proto";' for i in range(200)}
    with pytest.raises(SchemaError, match="too many files"):
        proto3('import "n0.proto";', **texts)


def test_a_descriptor_with_deep_messages_is_refused() -> None:
    file = FileDescriptorProto(name="x.proto", syntax="proto3")
    message = file.message_type.add(name="M")
    for _ in range(40):
        message = message.nested_type.add(name="M")
    with pytest.raises(SchemaError, match="nested more than 32"):
        parse(base64.b64encode(file.SerializeToString()).decode())


def test_a_descriptor_with_strings_that_are_no_text_is_refused() -> None:
    file = FileDescriptorProto(name="x.proto")
    file.message_type.add(name="M").reserved_name.append("gone")
    content = file.SerializeToString().replace(b"gone", b"g\xffne")
    with pytest.raises(SchemaError, match="not valid UTF-8"):
        parse(base64.b64encode(content).decode())


def test_a_map_entry_must_have_a_key_and_a_value() -> None:
    entry = "message AEntry { option map_entry = true; optional int32 key = 1; }"
    with pytest.raises(SchemaError, match='map entry "AEntry" has other fields'):
        proto2(f"message M {{ repeated AEntry a = 1; {entry} }}")


def test_a_map_may_be_written_as_the_message_that_it_is() -> None:
    entry = "option map_entry = true; optional int32 key = 1; optional string value = 2;"
    schema = proto2(f"message M {{ repeated AEntry a = 1; message AEntry {{ {entry} }} }}")
    assert "  map<int32, string> a = 1;\n" in schema.canonical


@pytest.mark.slow
def test_a_message_of_thirty_fields_is_parsed_quickly() -> None:
    text = "".join(f"  optional string field_{i} = {i + 1}; // comment\n" for i in range(30))
    proto3(f"message M {{ {text} }}")
    fastest = 1.0
    for _ in range(20):
        start = time.thread_time()
        proto3(f"message M {{ {text} }}")
        fastest = min(fastest, time.thread_time() - start)
    # It takes 2.5 ms; the limit leaves room for busy machines.
    assert fastest < 0.02
