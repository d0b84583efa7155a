"""Converters of single values: strings, bytes, numbers and booleans, with Java's encoding."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar, cast

from broker.errors import SerdeError
from broker.serde.primitives import (
    BooleanSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
)
from broker.serde.serde import Serde
from connect.config_def import ConfigDef, ConfigType, Importance, Width
from connect.converters.settings import (
    Found,
    HeaderConversion,
    all_are,
    converter_settings,
    parse_settings,
)
from connect.data import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    ConnectSchema,
    Type,
    text_of,
)
from connect.errors import ConfigError, DataError
from connect.records import Header


class StringConverter(HeaderConversion):
    """Strings; other values as Java prints them."""

    _SETTINGS: ClassVar[ConfigDef] = converter_settings().define(
        "converter.encoding",
        ConfigType.STRING,
        "UTF-8",
        importance=Importance.HIGH,
        doc="The name of the character set of the strings.",
        width=Width.MEDIUM,
        display_name="Encoding",
    )

    def __init__(self) -> None:
        self._encoding = "utf-8"

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        return cls._SETTINGS

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Configures it."""
        self._encoding = str(parse_settings(self._SETTINGS, config, is_key)["converter.encoding"])
        try:
            "".encode(self._encoding)
        except LookupError:
            raise ConfigError(
                f"Invalid value {self._encoding} for configuration converter.encoding: "
                "there is no such character set"
            ) from None

    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The bytes of a string."""
        if value is None:
            return None
        if isinstance(value, bytes):
            raise DataError(
                "Failed to serialize to a string: bytes have no text",
                at=f'topic "{topic}"',
                hint="set ByteArrayConverter",
            )
        try:
            return (value if type(value) is str else text_of(value)).encode(self._encoding)
        except UnicodeEncodeError as error:
            raise DataError(
                f"Failed to serialize to a string: {error}", at=f'topic "{topic}"'
            ) from error

    def to_connect_data(self, topic: str, headers: Sequence[Header], data: bytes | None) -> Found:
        """The string of bytes."""
        if data is None:
            return OPTIONAL_STRING, None
        try:
            return OPTIONAL_STRING, data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"Failed to deserialize string: {error}",
                at=f'topic "{topic}"',
                hint="the topic may have another format; use the converter that it was written "
                "with",
            ) from error

    def from_connect_many(
        self, topic: str, schemas: Sequence[ConnectSchema | None], values: Sequence[object]
    ) -> Sequence[bytes | None]:
        """The bytes of many strings."""
        if all_are(str, values):
            return list(map(str.encode, cast("Sequence[str]", values), repeat(self._encoding)))
        convert = self.from_connect_data
        return [convert(topic, (), None, value) for value in values]

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[Sequence[ConnectSchema | None], Sequence[object]]:
        """The strings of many bytes."""
        schemas = [OPTIONAL_STRING] * len(data)
        if all_are(bytes, data):
            return schemas, list(
                map(bytes.decode, cast("Sequence[bytes]", data), repeat(self._encoding))
            )
        convert = self.to_connect_data
        return schemas, [convert(topic, (), each)[1] for each in data]


class ByteArrayConverter(HeaderConversion):
    """Bytes, unchanged."""

    _SETTINGS: ClassVar[ConfigDef] = converter_settings()

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        return cls._SETTINGS

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Configures it."""

    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The same bytes."""
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(
                f"Invalid schema type for ByteArrayConverter: {schema.type.name}",
                at=f'topic "{topic}"',
                hint="use another converter: this one accepts only bytes",
            )
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise DataError(
            f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}",
            at=f'topic "{topic}"',
            hint="use another converter: this one accepts only bytes",
        )

    def to_connect_data(self, topic: str, headers: Sequence[Header], data: bytes | None) -> Found:
        """The same bytes."""
        return OPTIONAL_BYTES, data

    def from_connect_many(
        self, topic: str, schemas: Sequence[ConnectSchema | None], values: Sequence[object]
    ) -> Sequence[bytes | None]:
        """The same bytes of many."""
        convert = self.from_connect_data
        return [
            convert(topic, (), schema, value) for schema, value in zip(schemas, values, strict=True)
        ]

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[Sequence[ConnectSchema | None], Sequence[object]]:
        """The same bytes of many."""
        return [OPTIONAL_BYTES] * len(data), data


class _SerdeConverter(HeaderConversion):
    """Values of one type, converted by a serde."""

    kind: ClassVar[str]
    schema: ClassVar[ConnectSchema]
    serde: ClassVar[Serde[Any]]  # Any: it checks the types of values
    _SETTINGS: ClassVar[ConfigDef] = converter_settings()

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        return cls._SETTINGS

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Configures it."""
        parse_settings(self._SETTINGS, config, is_key)

    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The bytes of a value."""
        try:
            return self.serde.serialize(topic, value)
        except SerdeError as error:
            raise DataError(
                f"Failed to serialize to {self.kind} (was {type(value).__name__}): {error.message}",
                at=f'topic "{topic}"',
            ) from error

    def to_connect_data(self, topic: str, headers: Sequence[Header], data: bytes | None) -> Found:
        """The value of bytes."""
        try:
            return self.schema, self.serde.deserialize(topic, data)
        except SerdeError as error:
            raise DataError(
                f"Failed to deserialize {self.kind}: {error.message}",
                at=f'topic "{topic}"',
                hint="the topic may have another format; use the converter that it was written "
                "with",
            ) from error


class ShortConverter(_SerdeConverter):
    """16-bit integers."""

    kind, schema, serde = "short", OPTIONAL_INT16, ShortSerde()


class IntegerConverter(_SerdeConverter):
    """32-bit integers."""

    kind, schema, serde = "integer", OPTIONAL_INT32, IntegerSerde()


class LongConverter(_SerdeConverter):
    """64-bit integers."""

    kind, schema, serde = "long", OPTIONAL_INT64, LongSerde()


class FloatConverter(_SerdeConverter):
    """Single-precision numbers."""

    kind, schema, serde = "float", OPTIONAL_FLOAT32, FloatSerde()


class DoubleConverter(_SerdeConverter):
    """Double-precision numbers."""

    kind, schema, serde = "double", OPTIONAL_FLOAT64, DoubleSerde()


class BooleanConverter(_SerdeConverter):
    """One byte, 0 or 1."""

    kind, schema, serde = "boolean", OPTIONAL_BOOLEAN, BooleanSerde()

    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The byte of a boolean."""
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(
                f"Invalid schema type for BooleanConverter: {schema.type.name}",
                at=f'topic "{topic}"',
            )
        if value is not None and not isinstance(value, bool):
            raise DataError(
                f"BooleanConverter is not compatible with objects of type {type(value).__name__}",
                at=f'topic "{topic}"',
            )
        return super().from_connect_data(topic, headers, schema, value)
