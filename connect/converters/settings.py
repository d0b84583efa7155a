"""Common parts of converters: the setting converter.type, and headers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from connect.config_def import REQUIRED, ConfigDef, ConfigType, Importance, ValidString
from connect.data import ConnectSchema
from connect.records import Header

_TYPE = "converter.type"

Found = tuple[ConnectSchema | None, object]


def converter_settings() -> ConfigDef:
    """A definition with the setting that all converters have."""
    return ConfigDef().define(
        _TYPE,
        ConfigType.STRING,
        REQUIRED,
        validator=ValidString("key", "value", "header"),
        importance=Importance.LOW,
        doc="Whether keys, values or headers are converted; set by the worker.",
    )


def parse_settings(
    definition: ConfigDef, config: Mapping[str, object], is_key: bool
) -> dict[str, object]:
    """A converter's settings, including whether it converts keys or values."""
    return definition.parse({_TYPE: "key" if is_key else "value", **config})


def all_are(kind: type, values: Sequence[object]) -> bool:
    """Whether all values have exactly this type; False for no values."""
    return set(map(type, values)) == {kind}


class _Converts(Protocol):
    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None: ...

    def to_connect_data(
        self, topic: str, headers: Sequence[Header], data: bytes | None
    ) -> Found: ...


class HeaderConversion:
    """A converter whose headers are converted like its values."""

    def from_connect_header(
        self: _Converts, topic: str, key: str, schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The bytes of a header's value."""
        return self.from_connect_data(topic, (), schema, value)

    def to_connect_header(self: _Converts, topic: str, key: str, data: bytes | None) -> Found:
        """The schema and value of a header's bytes."""
        return self.to_connect_data(topic, (), data)
