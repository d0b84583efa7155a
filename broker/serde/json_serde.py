"""JsonSerde: JSON, with orjson."""

import orjson

from broker.serde.serde import cannot_decode, cannot_encode


class JsonSerde:
    """Any JSON value: objects, lists, strings, numbers, booleans; JSON's null is None, too."""

    def serialize(self, topic: str, value: object) -> bytes | None:
        """Compact JSON; None is a null record, not the string `null`."""
        if value is None:
            return None
        try:
            return orjson.dumps(value)
        except TypeError as error:
            raise cannot_encode(topic, "JSON", str(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> object:
        """The value of JSON bytes."""
        if data is None:
            return None
        try:
            found: object = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise cannot_decode(topic, "JSON", str(error)) from error
        return found
