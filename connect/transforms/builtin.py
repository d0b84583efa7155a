"""The transforms and predicates that are always there, by Kafka's names of them."""

from connect.api import Predicate, Transformation
from connect.transforms.cast import CastKey, CastValue
from connect.transforms.drop_headers import DropHeaders
from connect.transforms.extract_field import ExtractFieldKey, ExtractFieldValue
from connect.transforms.filter import Filter
from connect.transforms.flatten import FlattenKey, FlattenValue
from connect.transforms.header_from import HeaderFromKey, HeaderFromValue
from connect.transforms.hoist_field import HoistFieldKey, HoistFieldValue
from connect.transforms.insert_field import InsertFieldKey, InsertFieldValue
from connect.transforms.insert_header import InsertHeader
from connect.transforms.mask_field import MaskFieldKey, MaskFieldValue
from connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from connect.transforms.regex_router import RegexRouter
from connect.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from connect.transforms.set_schema_metadata import (
    SetSchemaMetadataKey,
    SetSchemaMetadataValue,
)
from connect.transforms.timestamp_converter import (
    TimestampConverterKey,
    TimestampConverterValue,
)
from connect.transforms.timestamp_router import TimestampRouter
from connect.transforms.value_to_key import ValueToKey

_PACKAGE = "org.apache.kafka.connect.transforms."

TRANSFORMATIONS: dict[str, type[Transformation]] = {
    f"{_PACKAGE}Cast$Key": CastKey,
    f"{_PACKAGE}Cast$Value": CastValue,
    f"{_PACKAGE}DropHeaders": DropHeaders,
    f"{_PACKAGE}ExtractField$Key": ExtractFieldKey,
    f"{_PACKAGE}ExtractField$Value": ExtractFieldValue,
    f"{_PACKAGE}Filter": Filter,
    f"{_PACKAGE}Flatten$Key": FlattenKey,
    f"{_PACKAGE}Flatten$Value": FlattenValue,
    f"{_PACKAGE}HeaderFrom$Key": HeaderFromKey,
    f"{_PACKAGE}HeaderFrom$Value": HeaderFromValue,
    f"{_PACKAGE}HoistField$Key": HoistFieldKey,
    f"{_PACKAGE}HoistField$Value": HoistFieldValue,
    f"{_PACKAGE}InsertField$Key": InsertFieldKey,
    f"{_PACKAGE}InsertField$Value": InsertFieldValue,
    f"{_PACKAGE}InsertHeader": InsertHeader,
    f"{_PACKAGE}MaskField$Key": MaskFieldKey,
    f"{_PACKAGE}MaskField$Value": MaskFieldValue,
    f"{_PACKAGE}RegexRouter": RegexRouter,
    f"{_PACKAGE}ReplaceField$Key": ReplaceFieldKey,
    f"{_PACKAGE}ReplaceField$Value": ReplaceFieldValue,
    f"{_PACKAGE}SetSchemaMetadata$Key": SetSchemaMetadataKey,
    f"{_PACKAGE}SetSchemaMetadata$Value": SetSchemaMetadataValue,
    f"{_PACKAGE}TimestampConverter$Key": TimestampConverterKey,
    f"{_PACKAGE}TimestampConverter$Value": TimestampConverterValue,
    f"{_PACKAGE}TimestampRouter": TimestampRouter,
    f"{_PACKAGE}ValueToKey": ValueToKey,
}
PREDICATES: dict[str, type[Predicate]] = {
    f"{_PACKAGE}predicates.HasHeaderKey": HasHeaderKey,
    f"{_PACKAGE}predicates.RecordIsTombstone": RecordIsTombstone,
    f"{_PACKAGE}predicates.TopicNameMatches": TopicNameMatches,
}
