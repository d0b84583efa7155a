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
        doc="Folder to write to; it has a folder for each topic",
    )
    .define(
        "format",
        ConfigType.STRING,
        "json",
        validator=CaseInsensitiveValidString("json", "parquet"),
        importance=Importance.HIGH,
        doc="json for a JSON value in each line, parquet for Parquet",
    )
    .define(
        "flush.size",
        ConfigType.INT,
        10_000,
        validator=Range(1),
        importance=Importance.HIGH,
        doc="Records of a partition after which its files are finished",
    )
    .define(
        "rotate.interval.ms",
        ConfigType.LONG,
        -1,
        validator=Range(-1),
        importance=Importance.HIGH,
        doc="Files are finished before a record that comes this long after their first one, by the "
        "records' time; -1 for never",
    )
    .define(
        "rotate.schedule.interval.ms",
        ConfigType.LONG,
        -1,
        validator=Range(-1),
        importance=Importance.MEDIUM,
        doc="Has all files finished at whole multiples of this time, by the clock; -1 for never",
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
        doc="Folders below the topic: by partition, field or time (or hourly or daily)",
    )
    .define(
        "partition.field.name",
        ConfigType.LIST,
        [],
        importance=Importance.MEDIUM,
        doc="Fields of the field partitioner",
    )
    .define(
        "path.format",
        ConfigType.STRING,
        HOURLY,
        importance=Importance.MEDIUM,
        doc="Folders of the time partitioner, as Java writes formats of times",
    )
    .define(
        "partition.duration.ms",
        ConfigType.LONG,
        -1,
        importance=Importance.LOW,
        doc="Length of the time partitioner's partitions, if not the last unit of its format",
    )
    .define(
        "timezone",
        ConfigType.STRING,
        "UTC",
        importance=Importance.LOW,
        doc="Time zone of the time partitioner",
    )
    .define(
        "timestamp.extractor",
        ConfigType.STRING,
        "Record",
        validator=CaseInsensitiveValidString("Record", "RecordField", "Wallclock"),
        importance=Importance.LOW,
        doc="Which time a record has: its timestamp, a field's, or the clock's",
    )
    .define(
        "timestamp.field",
        ConfigType.STRING,
        "timestamp",
        importance=Importance.LOW,
        doc="Field of the timestamp extractor RecordField",
    )
    .define(
        "filename.offset.zero.pad.width",
        ConfigType.INT,
        10,
        validator=Range(0),
        importance=Importance.LOW,
        doc="Digits of the offset in the names of files",
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
