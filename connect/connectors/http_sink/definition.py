"""The settings of the HTTP sink."""

from connect.config_def import (
    CaseInsensitiveValidString,
    Check,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
    Validator,
    invalid,
)
from connect.connectors.http_sink.status_codes import StatusCodes
from connect.errors import ConfigError


def _status_codes() -> Validator:
    def ensure_valid(name: str, value: object) -> None:
        try:
            StatusCodes(str(value))
        except ConfigError as error:
            raise invalid(name, value, error.message) from None

    return Check(ensure_valid, "codes and ranges of codes")


DEFINITION = (
    ConfigDef()
    .define(
        "http.api.url",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        doc="URL to send to; ${topic} and ${key} in it stand for those of the record",
    )
    .define(
        "request.method",
        ConfigType.STRING,
        "POST",
        validator=CaseInsensitiveValidString("POST", "PUT", "PATCH"),
        importance=Importance.HIGH,
        doc="Method of the requests",
    )
    .define(
        "headers",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="Headers of the requests, as name:value|name:value",
    )
    .define(
        "header.separator",
        ConfigType.STRING,
        "|",
        validator=NonEmptyString(),
        importance=Importance.LOW,
        doc="What separates the headers",
    )
    .define(
        "auth.type",
        ConfigType.STRING,
        "NONE",
        validator=CaseInsensitiveValidString("NONE", "BASIC", "BEARER"),
        importance=Importance.HIGH,
        doc="How the requests say who sends them",
    )
    .define(
        "connection.user",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="User of basic authentication",
    )
    .define(
        "connection.password",
        ConfigType.PASSWORD,
        "",
        importance=Importance.HIGH,
        doc="Password of basic authentication",
    )
    .define(
        "bearer.token",
        ConfigType.PASSWORD,
        "",
        importance=Importance.HIGH,
        doc="Token of bearer authentication",
    )
    .define(
        "request.body.format",
        ConfigType.STRING,
        "string",
        validator=CaseInsensitiveValidString("string", "json"),
        importance=Importance.MEDIUM,
        doc="How values are written into the body",
    )
    .define(
        "batch.max.size",
        ConfigType.INT,
        1,
        validator=Range(1),
        importance=Importance.HIGH,
        doc="Most records in one request; all of them are of one partition and one URL",
    )
    .define(
        "batch.json.as.array",
        ConfigType.BOOLEAN,
        True,
        importance=Importance.MEDIUM,
        doc="Whether JSON values are sent as an array, even a single one, "
        "unless batch.prefix or batch.suffix is set",
    )
    .define(
        "batch.prefix",
        ConfigType.STRING,
        "",
        importance=Importance.MEDIUM,
        doc="What comes before the first value; \\n and \\t are understood",
    )
    .define(
        "batch.suffix",
        ConfigType.STRING,
        "",
        importance=Importance.MEDIUM,
        doc="What comes after the last value; \\n and \\t are understood",
    )
    .define(
        "batch.separator",
        ConfigType.STRING,
        ",",
        importance=Importance.MEDIUM,
        doc="What comes between two values; \\n and \\t are understood",
    )
    .define(
        "max.retries",
        ConfigType.INT,
        10,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="How often a request that failed is sent again",
    )
    .define(
        "retry.backoff.ms",
        ConfigType.INT,
        3000,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="Wait before the first retry; each further one waits twice as long, up to a minute",
    )
    .define(
        "retry.on.status.codes",
        ConfigType.STRING,
        "408,429,500-",
        validator=_status_codes(),
        importance=Importance.MEDIUM,
        doc="Answers after which a request is sent again, as 429,500-503,509-",
    )
    .define(
        "http.connect.timeout.ms",
        ConfigType.INT,
        30_000,
        validator=Range(1),
        importance=Importance.MEDIUM,
        doc="Longest wait for a connection",
    )
    .define(
        "http.request.timeout.ms",
        ConfigType.INT,
        30_000,
        validator=Range(1),
        importance=Importance.MEDIUM,
        doc="Longest silence of the server while it answers",
    )
    .define(
        "idempotency.key.header",
        ConfigType.STRING,
        "Idempotency-Key",
        importance=Importance.LOW,
        doc="Header with topic-partition-offset of the record, or of the first and the last one of "
        "a batch; empty for none",
    )
    .define(
        "behavior.on.null.values",
        ConfigType.STRING,
        "ignore",
        validator=CaseInsensitiveValidString("ignore", "delete", "log", "fail"),
        importance=Importance.LOW,
        doc="What to do with a record without a value: skip it, send DELETE, log it, or fail",
    )
    .define(
        "behavior.on.error",
        ConfigType.STRING,
        "fail",
        validator=CaseInsensitiveValidString("fail", "ignore", "log"),
        importance=Importance.LOW,
        doc="What to do with records that cannot be delivered: fail, skip or log them; where there "
        "is a dead letter topic, they go there unless they are to be skipped",
    )
)
