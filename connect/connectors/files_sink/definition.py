"""The settings of the files sink."""

from connect.config_def import (
    CaseInsensitiveValidString,
    Check,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
    invalid,
)
from connect.connectors.files_sink.partitioners import HOURLY, NAMES, partitioner_name


def _ensure_partitioner(name: str, value: object) -> None:
    if partitioner_name(str(value)) not in NAMES:
        raise invalid(name, value, f"String must be one of: {', '.join(NAMES)}")


DEFINITION = (
    ConfigDef()
    .define(
        "directory",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        doc="The directory to write to; it has a subdirectory for each topic",
    )
    .define(
        "format",
        ConfigType.STRING,
        "json",
        validator=CaseInsensitiveValidString("json", "parquet"),
        importance=Importance.HIGH,
        doc="json for one JSON value per line, parquet for Parquet",
    )
    .define(
        "flush.size",
        ConfigType.INT,
        10_000,
        validator=Range(1),
        importance=Importance.HIGH,
        doc="The number of records of a partition after which its files are committed",
    )
    .define(
        "rotate.interval.ms",
        ConfigType.LONG,
        -1,
        validator=Range(-1),
        importance=Importance.HIGH,
        doc="The maximum time span in milliseconds of the records in a file, by their "
        "timestamps; -1 for no limit",
    )
    .define(
        "rotate.schedule.interval.ms",
        ConfigType.LONG,
        -1,
        validator=Range(-1),
        importance=Importance.MEDIUM,
        doc="Files are committed at multiples of this interval in milliseconds, by the "
        "wall clock; -1 for never",
    )
    .define(
        "compression.type",
        ConfigType.STRING,
        "",
        validator=CaseInsensitiveValidString("", "none", "gzip", "zstd", "snappy", "lz4", "brotli"),
        importance=Importance.MEDIUM,
        doc="Compression: none (default), gzip or zstd for JSON; none, snappy (default), gzip, "
        "zstd, lz4 or brotli for Parquet",
    )
    .define(
        "partitioner.class",
        ConfigType.STRING,
        "default",
        validator=Check(_ensure_partitioner, f"[{', '.join(NAMES)}]"),
        importance=Importance.MEDIUM,
        doc="Subdirectories of the topic: by partition, field or time (or hourly or daily)",
    )
    .define(
        "partition.field.name",
        ConfigType.LIST,
        [],
        importance=Importance.MEDIUM,
        doc="The fields for the field partitioner",
    )
    .define(
        "path.format",
        ConfigType.STRING,
        HOURLY,
        importance=Importance.MEDIUM,
        doc="The directory format of the time partitioner, with Java's date and time patterns",
    )
    .define(
        "partition.duration.ms",
        ConfigType.LONG,
        -1,
        importance=Importance.LOW,
        doc="The duration in milliseconds of the time partitioner's partitions. The "
        "default is the smallest unit of its format",
    )
    .define(
        "timezone",
        ConfigType.STRING,
        "UTC",
        importance=Importance.LOW,
        doc="The time zone of the time partitioner",
    )
    .define(
        "timestamp.extractor",
        ConfigType.STRING,
        "Record",
        validator=CaseInsensitiveValidString("Record", "RecordField", "Wallclock"),
        importance=Importance.LOW,
        doc="Where the time of a record comes from: its timestamp, a field, or the wall clock",
    )
    .define(
        "timestamp.field",
        ConfigType.STRING,
        "timestamp",
        importance=Importance.LOW,
        doc="The field for the timestamp extractor RecordField",
    )
    .define(
        "filename.offset.zero.pad.width",
        ConfigType.INT,
        10,
        validator=Range(0),
        importance=Importance.LOW,
        doc="The number of digits of the offset in file names",
    )
    .define(
        "behavior.on.null.values",
        ConfigType.STRING,
        "fail",
        validator=CaseInsensitiveValidString("ignore", "fail"),
        importance=Importance.LOW,
        doc="What to do with a record without a value",
    )
)
