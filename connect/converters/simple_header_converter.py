"""SimpleHeaderConverter: headers as strings, whose types are inferred when they are read."""

from collections.abc import Mapping

from connect.config_def import ConfigDef
from connect.converters.settings import Found
from connect.data import BYTES, ConnectSchema
from connect.value_strings import text_of_value, value_of_text


class SimpleHeaderConverter:
    """The default header converter of a worker."""

    @classmethod
    def config(cls) -> ConfigDef:
        """It has no settings."""
        return ConfigDef()

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """It has no settings."""

    def from_connect_header(
        self, topic: str, key: str, schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The string of a header's value."""
        return None if value is None else text_of_value(value).encode()

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> Found:
        """The value of a header's string; bytes that are not text are returned unchanged."""
        if data is None:
            return None, None
        try:
            return value_of_text(data.decode())
        except UnicodeDecodeError:
            return BYTES, data
