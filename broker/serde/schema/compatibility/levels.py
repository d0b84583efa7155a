"""CompatibilityLevel: which earlier versions a new schema is compared with, and in which direction.

    BACKWARD    the new schema reads what the last version wrote
    FORWARD     the last version reads what the new schema writes
    FULL        both
    NONE        nothing is compared

With _TRANSITIVE, all versions are compared and not only the last one.
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
    """What a registry asks of new versions."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether all earlier versions count."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Whether the new schema must read what earlier versions wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Whether earlier versions must read what the new schema writes."""
        return self.value.startswith(("FORWARD", "FULL"))


def incompatibilities(
    level: CompatibilityLevel, new: ParsedSchema, previous: Sequence[ParsedSchema]
) -> list[str]:
    """What a level forbids in a new schema; `previous` is in order, the oldest first."""
    compared = previous if level.transitive else previous[-1:]
    found: list[str] = []
    # The newest version is looked at first, as its messages matter most.
    for old in reversed(compared):
        if level.backward:
            found.extend(differences(new, old))
        if level.forward:
            found.extend(swapped(each) for each in differences(old, new))
        if found:
            break
    return list(dict.fromkeys(found))


def differences(new: ParsedSchema, old: ParsedSchema) -> list[str]:
    """What keeps data written with `old` from being read with `new`."""
    if isinstance(new, AvroSchema) and isinstance(old, AvroSchema):
        return avro.differences(new, old)
    if isinstance(new, JsonSchema) and isinstance(old, JsonSchema):
        return json_schema.differences(new, old)
    if isinstance(new, ProtobufSchema) and isinstance(old, ProtobufSchema):
        return protobuf.differences(new, old)
    return [OTHER_KIND]


def swapped(message: str) -> str:
    """A message about the old schema as reader, where new is called old and old new."""
    return SIDES.sub(lambda match: f"{match[1]} {'old' if match[2] == 'new' else 'new'}", message)
