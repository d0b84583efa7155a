"""Files that every Protobuf schema may import without a reference: Google's and Confluent's."""

from functools import cache
from types import ModuleType

from google.protobuf import (  # type: ignore[import-untyped]
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FileDescriptorProto  # type: ignore[import-untyped]

from broker.serde.schema.protobuf_builder import build_file
from broker.serde.schema.protobuf_text import parse_text

_MODULES: tuple[ModuleType, ...] = (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)

_BY_MODULE = {str(module.DESCRIPTOR.name): module for module in _MODULES}

_DECIMAL = """
syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""

_VARIANT = """
syntax = "proto3";
package confluent.type;
message Variant {
  bytes metadata = 1;
  bytes value = 2;
}
"""

_META = """
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule {
  string name = 1;
  string doc = 2;
  string expr = 3;
  string sql = 4;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""

_DATE = """
syntax = "proto3";
package google.type;
message Date {
  int32 year = 1;
  int32 month = 2;
  int32 day = 3;
}
"""

_TIME_OF_DAY = """
syntax = "proto3";
package google.type;
message TimeOfDay {
  int32 hours = 1;
  int32 minutes = 2;
  int32 seconds = 3;
  int32 nanos = 4;
}
"""

_LEGACY_DECIMAL = """
syntax = "proto3";
import public "confluent/type/decimal.proto";
"""

_TEXTS = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": _VARIANT,
    "confluent/types/decimal.proto": _LEGACY_DECIMAL,
    "google/type/date.proto": _DATE,
    "google/type/timeofday.proto": _TIME_OF_DAY,
}

KNOWN_IMPORTS = frozenset(_TEXTS) | frozenset(_BY_MODULE)


@cache
def known_file(name: str) -> FileDescriptorProto:
    """The descriptor of one of KNOWN_IMPORTS; it is shared and must not be changed."""
    module = _BY_MODULE.get(name)
    if module is not None:
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        return file
    return build_file(parse_text(_TEXTS[name]), name)
