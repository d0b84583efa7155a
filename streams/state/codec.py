"""StoreCodec: converts keys and values of a store to bytes and back.

For known serdes, `encode_*` and `decode_*` are faster equivalents of the serde's methods. They do
not accept None, and their errors are not useful to users: callers catch them and call `key_bytes`,
`value_bytes` or `value_of`, which use the serde itself and raise its error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import Any

import orjson

from broker.serde import BindableSerde, DoubleSerde, JsonSerde, LongSerde, Serde, StringSerde
from streams.errors import StoreError

# Any below, because stores have different types.
Encode = Callable[[Any], bytes | None]
Decode = Callable[[bytes], Any]

_pack_long = Struct(">q").pack
_unpack_long = Struct(">q").unpack
_unpack_double = Struct(">d").unpack


def _encode_long(value: object) -> bytes:
    if type(value) is not int:  # a bool is an int that a LongSerde refuses
        raise TypeError
    return _pack_long(value)


_ENCODE_KEY: dict[type[Any], Encode] = {StringSerde: str.encode, LongSerde: _encode_long}
_ENCODE_VALUE: dict[type[Any], Encode] = {**_ENCODE_KEY, JsonSerde: orjson.dumps}
_DECODE: dict[type[Any], Decode] = {
    StringSerde: bytes.decode,
    LongSerde: lambda data: _unpack_long(data)[0],
    DoubleSerde: lambda data: _unpack_double(data)[0],
    JsonSerde: orjson.loads,
}


def _encoder(serde: Serde[Any], topic: str) -> Encode:
    if isinstance(serde, BindableSerde):
        return serde.encoder(topic)
    return partial(serde.serialize, topic)


def _decoder(serde: Serde[Any], topic: str) -> Decode:
    if isinstance(serde, BindableSerde):
        return serde.decoder(topic)
    return partial(serde.deserialize, topic)


@dataclass(frozen=True, slots=True)
class StoreCodec:
    """The serdes of a store, bound to its changelog topic."""

    store: str
    topic: str
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    encode_key: Encode
    decode_key: Decode
    encode_value: Encode
    decode_value: Decode

    @staticmethod
    def of(store: str, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> "StoreCodec":
        """The codec of a store."""
        key, value = type(key_serde), type(value_serde)
        return StoreCodec(
            store,
            topic,
            key_serde,
            value_serde,
            _ENCODE_KEY.get(key) or _encoder(key_serde, topic),
            _DECODE.get(key) or _decoder(key_serde, topic),
            _ENCODE_VALUE.get(value) or _encoder(value_serde, topic),
            _DECODE.get(value) or _decoder(value_serde, topic),
        )

    def raw_key(self, key: object) -> bytes:
        """Like `key_bytes`, but faster."""
        try:
            raw = self.encode_key(key)
        except Exception:  # the serde raises a better error
            raw = None
        return self.key_bytes(key) if raw is None else raw

    def raw_value(self, value: object) -> bytes | None:
        """Like `value_bytes`, but faster."""
        if value is None:
            return None
        try:
            return self.encode_value(value)
        except Exception:  # the serde raises a better error
            return self.value_bytes(value)

    def key_bytes(self, key: object) -> bytes:
        """Serialize a key; None raises StoreError."""
        raw = self.key_serde.serialize(self.topic, key)
        if raw is None:
            raise StoreError(
                "a key is None",
                at=f'store "{self.store}"',
                hint="stores have no entry without a key",
            )
        return raw

    def value_bytes(self, value: object) -> bytes | None:
        """Serialize a value."""
        return self.value_serde.serialize(self.topic, value)

    def value_of(self, data: bytes) -> Any:
        """Deserialize a value."""
        return self.value_serde.deserialize(self.topic, data)

    def key_of(self, raw: bytes) -> Any:
        """Deserialize a key."""
        return self.key_serde.deserialize(self.topic, raw)
