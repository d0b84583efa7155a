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
        doc="The topic to write to",
    )
    .define(
        "quickstart",
        ConfigType.STRING,
        "",
        validator=CaseInsensitiveValidString("", *QUICKSTARTS),
        importance=Importance.HIGH,
        doc="The predefined schema of the records to generate",
    )
    .define(
        "schema.string",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="The Avro schema of the records, with arg.properties that define the generated values",
    )
    .define(
        "schema.filename",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="The file with the Avro schema of the records",
    )
    .define(
        "schema.keyfield",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="The field to use as the key. The default is that of the quickstart",
    )
    .define(
        "max.interval",
        ConfigType.LONG,
        500,
        importance=Importance.HIGH,
        doc="The maximum time in milliseconds between two records; 0 for no pause",
    )
    .define(
        "iterations",
        ConfigType.LONG,
        -1,
        importance=Importance.HIGH,
        doc="The number of records that each task generates; below 1 for no limit. A "
        "finished task idles",
    )
    .define(
        "rate",
        ConfigType.DOUBLE,
        0.0,
        validator=Range(0),
        importance=Importance.HIGH,
        doc="The number of records per second of all tasks together, instead of "
        "max.interval; 0 for no rate",
    )
    .define(
        "keys",
        ConfigType.LONG,
        0,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="The number of distinct keys; 0 leaves it to the schema",
    )
    .define(
        "late.share",
        ConfigType.DOUBLE,
        0.0,
        validator=Range(0, 1),
        importance=Importance.MEDIUM,
        doc="The fraction of records with an older timestamp, from 0 to 1",
    )
    .define(
        "late.max.ms",
        ConfigType.LONG,
        60_000,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="The maximum lateness of late records in milliseconds",
    )
    .define(
        "random.seed",
        ConfigType.LONG,
        None,
        importance=Importance.LOW,
        doc="The random seed: the same seed generates the same records",
    )
    .define(
        "seed",
        ConfigType.LONG,
        None,
        importance=Importance.LOW,
        doc="An alias of random.seed",
    )
    .define(
        "start.time",
        ConfigType.STRING,
        "",
        importance=Importance.LOW,
        doc="The timestamp of the first record, as 2024-05-17T12:00:00Z or "
        "milliseconds; later ones follow at the rate. The default is the current "
        "time",
    )
)
