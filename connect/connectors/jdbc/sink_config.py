"""Settings of the JDBC sink, and checks of their combinations."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from connect.config_def import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
    Settings,
    Width,
)
from connect.connectors.jdbc.connection_config import CONNECTION_KEYS, table_types_key
from connect.connectors.jdbc.dialects.dialect import Action

_WRITES = "Writes"
_MAPPING = "Data Mapping"
_DDL = "DDL Support"
_RETRIES = "Retries"
KAFKA_FIELDS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")


class KeyMode(enum.Enum):
    """The values of pk.mode: the source of the primary key."""

    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


_KEYS = (
    ConfigKey(
        "insert.mode",
        ConfigType.STRING,
        "insert",
        validator=CaseInsensitiveValidString("insert", "upsert", "update"),
        importance=Importance.HIGH,
        doc="insert inserts rows, upsert inserts or replaces rows by primary key, "
        "update only replaces rows.",
        group=_WRITES,
        display_name="Insert Mode",
    ),
    ConfigKey(
        "batch.size",
        ConfigType.INT,
        3000,
        validator=Range(1),
        importance=Importance.MEDIUM,
        doc="The maximum number of records per transaction.",
        group=_WRITES,
        display_name="Batch Size",
    ),
    ConfigKey(
        "delete.enabled",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        doc="Whether a record with a null value deletes its row; requires pk.mode=record_key.",
        group=_WRITES,
        display_name="Enable deletes",
    ),
    table_types_key("Kinds of tables to write to: TABLE, VIEW, PARTITIONED TABLE."),
    ConfigKey(
        "max.retries",
        ConfigType.INT,
        10,
        validator=Range(-1),
        importance=Importance.MEDIUM,
        doc="The maximum number of retries after a failure before the task fails; -1 for no limit.",
        group=_RETRIES,
        display_name="Maximum Retries",
    ),
    ConfigKey(
        "retry.backoff.ms",
        ConfigType.INT,
        3000,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="The time in milliseconds before a retry.",
        group=_RETRIES,
        display_name="Retry Backoff (millis)",
    ),
    ConfigKey(
        "table.name.format",
        ConfigType.STRING,
        "${topic}",
        validator=NonEmptyString(),
        importance=Importance.MEDIUM,
        doc="The name of a topic's table, including the schema if it is not the default one.",
        group=_MAPPING,
        width=Width.LONG,
        display_name="Table Name Format",
    ),
    ConfigKey(
        "pk.mode",
        ConfigType.STRING,
        "none",
        validator=CaseInsensitiveValidString(*(mode.value for mode in KeyMode)),
        importance=Importance.HIGH,
        doc="The source of the primary key: no primary key (none), the record's topic, "
        "partition and offset (kafka), its key (record_key) or its value "
        "(record_value).",
        group=_MAPPING,
        display_name="Primary Key Mode",
    ),
    ConfigKey(
        "pk.fields",
        ConfigType.LIST,
        "",
        importance=Importance.MEDIUM,
        doc="The fields of the primary key. The default is all fields of the key or value.",
        group=_MAPPING,
        display_name="Primary Key Fields",
    ),
    ConfigKey(
        "fields.whitelist",
        ConfigType.LIST,
        "",
        importance=Importance.MEDIUM,
        doc="The fields of the value to write. The default is all fields.",
        group=_MAPPING,
        display_name="Fields Whitelist",
    ),
    ConfigKey(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        True,
        importance=Importance.MEDIUM,
        doc="Whether a null is replaced with the default of its field.",
        group=_MAPPING,
        display_name="Replace null with default",
    ),
    ConfigKey(
        "auto.create",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        doc="Whether to create missing tables from the record's schema.",
        group=_DDL,
        display_name="Auto-Create",
    ),
    ConfigKey(
        "auto.evolve",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        doc="Whether to add missing columns to the table.",
        group=_DDL,
        display_name="Auto-Evolve",
    ),
)


SINK_DEFINITION: Final = ConfigDef((*CONNECTION_KEYS, *_KEYS))


@dataclass(frozen=True, slots=True)
class RowMapping:
    """How records are mapped to rows."""

    action: Action
    key_mode: KeyMode
    key_fields: tuple[str, ...]
    whitelist: frozenset[str]
    deletes: bool
    null_is_default: bool


def mapping_of(settings: Settings) -> RowMapping:
    """The row mapping of a configuration."""
    return RowMapping(
        Action(settings.text("insert.mode").lower()),
        KeyMode(settings.text("pk.mode").lower()),
        tuple(settings.strings("pk.fields")),
        frozenset(settings.strings("fields.whitelist")),
        settings.boolean("delete.enabled"),
        settings.boolean("replace.null.with.default"),
    )


def contradictions(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Settings that contradict each other, with an error for each."""
    result: dict[str, list[str]] = {}
    mapping = mapping_of(settings)
    mode = mapping.key_mode
    if mapping.deletes and mode is not KeyMode.RECORD_KEY:
        why = "Deletes are only supported for pk.mode record_key"
        result["delete.enabled"] = [why]
        result["pk.mode"] = [why]
    if mapping.action is not Action.INSERT and mode is KeyMode.NONE:
        why = f"insert.mode {mapping.action.value} needs a primary key: set pk.mode"
        result["insert.mode"] = [why]
        result.setdefault("pk.mode", []).append(why)
    if mode is KeyMode.KAFKA and len(mapping.key_fields) not in (0, len(KAFKA_FIELDS)):
        result["pk.fields"] = [
            "pk.mode kafka needs three names in pk.fields, for topic, partition and offset, or none"
        ]
    return result
