"""Fields of Protobuf messages: maps, unions and the options of Confluent."""

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

from google.protobuf import text_format  # type: ignore[import-untyped]
from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from broker.errors import SchemaError
from broker.serde.schema.protobuf_known import known_file

# The parts of a message: fields, and unions of fields.
Member: TypeAlias = FieldDescriptor | OneofDescriptor

DECIMAL_MESSAGE = "confluent.type.Decimal"
DATE_MESSAGE = "google.type.Date"
TIME_MESSAGE = "google.type.TimeOfDay"
TIMESTAMP_MESSAGE = "google.protobuf.Timestamp"


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether a field has many values."""
    return bool(field.is_repeated)


def entry_of(field: FieldDescriptor) -> Descriptor | None:
    """The message of a map's entries: of `map<>`, or as Connect writes maps."""
    message = field.message_type
    if message is None or not is_repeated(field):
        return None
    names = [each.name for each in message.fields]
    if message.GetOptions().map_entry or (
        message.name.endswith("Entry") and names == ["key", "value"]
    ):
        return message
    return None


def unions(message: Descriptor) -> Iterator[OneofDescriptor]:
    """Declared oneofs, not those that `optional` creates."""
    for each in message.oneofs:
        if not (len(each.fields) == 1 and each.name == f"_{each.fields[0].name}"):
            yield each


def fields_outside(message: Descriptor) -> list[FieldDescriptor]:
    """Fields that are not in a union."""
    inside = {field.number for each in unions(message) for field in each.fields}
    return [each for each in message.fields if each.number not in inside]


def union_name(union: OneofDescriptor) -> str:
    """A union's name as a column."""
    return f"{union.name}_{union.index}"


def field_parameters(field: FieldDescriptor) -> dict[str, str]:
    """The parameters in Confluent's option of a field."""
    given = field.GetOptions()
    content = given.SerializeToString()
    if not content:
        return {}
    options, extension = _field_options()
    meta = options.FromString(content).Extensions[extension]
    for each in given.uninterpreted_option:
        # The option's file need not be imported; Confluent's parser always has it.
        if [part.name_part for part in each.name] == [extension.full_name]:
            try:
                text_format.Merge(each.aggregate_value, meta)
            except text_format.ParseError as error:
                raise SchemaError(f'option of field "{field.full_name}": {error}') from None
    return dict(meta.params)


# Any: the objects that Google's library creates from descriptors have no types.
@cache
def _field_options() -> tuple[Any, Any]:
    """The class of field options, with Confluent's extension."""
    pool = DescriptorPool()
    for name in ("google/protobuf/descriptor.proto", "confluent/meta.proto"):
        pool.AddSerializedFile(known_file(name).SerializeToString())
    options = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
    return options, pool.FindExtensionByName("confluent.field_meta")
