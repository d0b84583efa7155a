"""The settings of the datagen connector."""

from connect.config_def import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
)
from connect.connectors.datagen.quickstarts import QUICKSTARTS

DEFINITION = (
    ConfigDef()
    .define(
        "kafka.topic",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        doc="Topic to write to",
    )
    .define(
        "quickstart",
        ConfigType.STRING,
        "",
        validator=CaseInsensitiveValidString("", *QUICKSTARTS),
        importance=Importance.HIGH,
        doc="Name of the ready-made kind of records to generate",
    )
    .define(
        "schema.string",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="Avro schema of the records, with arg.properties that say which values to make",
    )
    .define(
        "schema.filename",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="File with the Avro schema of the records",
    )
    .define(
        "schema.keyfield",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="Field whose value is the key; a quickstart has one, which this changes",
    )
    .define(
        "max.interval",
        ConfigType.LONG,
        500,
        importance=Importance.HIGH,
        doc="Longest time between two records in milliseconds; 0 generates without a pause",
    )
    .define(
        "iterations",
        ConfigType.LONG,
        -1,
        importance=Importance.HIGH,
        doc="Number of records of each task; less than 1 for no end. A task that is done idles",
    )
    .define(
        "rate",
        ConfigType.DOUBLE,
        0.0,
        validator=Range(0),
        importance=Importance.HIGH,
        doc="Records in a second of all tasks together, instead of max.interval; 0 for no rate",
    )
    .define(
        "keys",
        ConfigType.LONG,
        0,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="Number of different keys; 0 for what the schema says",
    )
    .define(
        "late.share",
        ConfigType.DOUBLE,
        0.0,
        validator=Range(0, 1),
        importance=Importance.MEDIUM,
        doc="Share of records with a timestamp of the past, from 0 to 1",
    )
    .define(
        "late.max.ms",
        ConfigType.LONG,
        60_000,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="How late the late records are at most",
    )
    .define(
        "random.seed",
        ConfigType.LONG,
        None,
        importance=Importance.LOW,
        doc="Seed of all chance: the same seed generates the same records",
    )
    .define(
        "seed",
        ConfigType.LONG,
        None,
        importance=Importance.LOW,
        doc="A shorter name of random.seed",
    )
    .define(
        "start.time",
        ConfigType.STRING,
        "",
        importance=Importance.LOW,
        doc="Timestamp of the first record, as 2024-05-17T12:00:00Z or milliseconds; later ones "
        "follow at the rate. Without it, timestamps are the time of the clock",
    )
)
