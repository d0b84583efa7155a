"""What the tests of converters with a registry share."""

from collections.abc import Callable, Mapping

import orjson

from broker.serde.schema.schema import Schema, SchemaKind
from connect.converters.registry_converter import RegistryConverter
from connect.data import ConnectSchema
from tests.support.memory_registry import MemoryRegistry


class Registered:
    """A converter with a registry of its own; settings have underlines instead of dots."""

    def __init__(
        self,
        make: Callable[[MemoryRegistry], RegistryConverter],
        settings: Mapping[str, str],
        *,
        is_key: bool = False,
    ) -> None:
        self.registry = MemoryRegistry()
        self.converter = make(self.registry)
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self.converter.configure(config, is_key)

    def write(self, schema: ConnectSchema | None, value: object, topic: str = "t") -> bytes:
        """The bytes of a value, which is not null."""
        data = self.converter.from_connect_data(topic, (), schema, value)
        assert data is not None
        return data

    def read(self, data: bytes | None, topic: str = "t") -> tuple[ConnectSchema | None, object]:
        """The schema and value of bytes."""
        return self.converter.to_connect_data(topic, (), data)

    def there_and_back(self, schema: ConnectSchema, value: object) -> tuple[ConnectSchema, object]:
        """What is read of what was written, twice: the second one goes the short way."""
        data = self.write(schema, value)
        first, again = self.read(data), self.read(data)
        assert first == again
        assert first[0] is not None
        return first[0], first[1]

    def text(self, subject: str = "t-value") -> str:
        """The latest schema that was registered."""
        return self.registry.version(subject).schema.text

    def json(self, subject: str = "t-value") -> object:
        """The same as a JSON value."""
        found: object = orjson.loads(self.text(subject))
        return found

    def register(self, text: object, kind: SchemaKind, subject: str = "t-value") -> int:
        """The id of a schema that another client registered."""
        shown = text if isinstance(text, str) else orjson.dumps(text).decode()
        return self.registry.register(subject, Schema(shown, kind))


def framed(schema_id: int, payload: bytes) -> bytes:
    """Bytes behind the id of their schema."""
    return b"\0" + schema_id.to_bytes(4, "big") + payload
