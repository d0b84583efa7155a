"""CompatibilityLevel: the earlier versions that a schema is compared with, and the direction.

    BACKWARD    the new schema can read data of the last version
    FORWARD     the last version can read data of the new schema
    FULL        both
    NONE        nothing is compared

With _TRANSITIVE, all versions are compared, not only the last one.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from broker.serde.schema.avro_schema import AvroSchema
from broker.serde.schema.compatibility import avro, json_schema, protobuf
from broker.serde.schema.json_schema import JsonSchema
from broker.serde.schema.protobuf_schema import ProtobufSchema
from broker.serde.schema.schema import ParsedSchema

OTHER_KIND = "Incompatible because of different schema type"
SIDES = re.compile(r"\b([Tt]he) (new|old)\b")


class CompatibilityLevel(StrEnum):
    """The requirement of a registry for new versions."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether all earlier versions are compared."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Whether the new schema must be able to read data of earlier versions."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Whether earlier versions must be able to read data of the new schema."""
        return self.value.startswith(("FORWARD", "FULL"))


def incompatibilities(
    level: CompatibilityLevel, new: ParsedSchema, previous: Sequence[ParsedSchema]
) -> list[str]:
    """The incompatibilities at a level; `previous` is in order, the oldest first."""
    compared = previous if level.transitive else previous[-1:]
    found: list[str] = []
    # The newest version is compared first, because its messages matter most.
    for old in reversed(compared):
        if level.backward:
            found.extend(differences(new, old))
        if level.forward:
            found.extend(swapped(each) for each in differences(old, new))
        if found:
            break
    return list(dict.fromkeys(found))


def differences(new: ParsedSchema, old: ParsedSchema) -> list[str]:
    """The reasons why data written with `old` cannot be read with `new`."""
    if isinstance(new, AvroSchema) and isinstance(old, AvroSchema):
        return avro.differences(new, old)
    if isinstance(new, JsonSchema) and isinstance(old, JsonSchema):
        return json_schema.differences(new, old)
    if isinstance(new, ProtobufSchema) and isinstance(old, ProtobufSchema):
        return protobuf.differences(new, old)
    return [OTHER_KIND]


def swapped(message: str) -> str:
    """A message with the old schema as reader: swaps "new" and "old"."""
    return SIDES.sub(lambda match: f"{match[1]} {'old' if match[2] == 'new' else 'new'}", message)
