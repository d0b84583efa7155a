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
        doc="The URL to send records to; ${topic} and ${key} are replaced with those of the record",
    )
    .define(
        "request.method",
        ConfigType.STRING,
        "POST",
        validator=CaseInsensitiveValidString("POST", "PUT", "PATCH"),
        importance=Importance.HIGH,
        doc="The HTTP method of the requests",
    )
    .define(
        "headers",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="The headers of the requests, as name:value|name:value",
    )
    .define(
        "header.separator",
        ConfigType.STRING,
        "|",
        validator=NonEmptyString(),
        importance=Importance.LOW,
        doc="The separator between headers",
    )
    .define(
        "auth.type",
        ConfigType.STRING,
        "NONE",
        validator=CaseInsensitiveValidString("NONE", "BASIC", "BEARER"),
        importance=Importance.HIGH,
        doc="The type of authentication",
    )
    .define(
        "connection.user",
        ConfigType.STRING,
        "",
        importance=Importance.HIGH,
        doc="The user for basic authentication",
    )
    .define(
        "connection.password",
        ConfigType.PASSWORD,
        "",
        importance=Importance.HIGH,
        doc="The password for basic authentication",
    )
    .define(
        "bearer.token",
        ConfigType.PASSWORD,
        "",
        importance=Importance.HIGH,
        doc="The token for bearer authentication",
    )
    .define(
        "request.body.format",
        ConfigType.STRING,
        "string",
        validator=CaseInsensitiveValidString("string", "json"),
        importance=Importance.MEDIUM,
        doc="The format of values in the request body",
    )
    .define(
        "batch.max.size",
        ConfigType.INT,
        1,
        validator=Range(1),
        importance=Importance.HIGH,
        doc="The maximum number of records per request, all of the same partition and URL",
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
        doc="The prefix before the first value; \\n and \\t are escapes",
    )
    .define(
        "batch.suffix",
        ConfigType.STRING,
        "",
        importance=Importance.MEDIUM,
        doc="The suffix after the last value; \\n and \\t are escapes",
    )
    .define(
        "batch.separator",
        ConfigType.STRING,
        ",",
        importance=Importance.MEDIUM,
        doc="The separator between two values; \\n and \\t are escapes",
    )
    .define(
        "max.retries",
        ConfigType.INT,
        10,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="The maximum number of retries of a failed request",
    )
    .define(
        "retry.backoff.ms",
        ConfigType.INT,
        3000,
        validator=Range(0),
        importance=Importance.MEDIUM,
        doc="The time in milliseconds before the first retry; it doubles for each "
        "further retry, up to a minute",
    )
    .define(
        "retry.on.status.codes",
        ConfigType.STRING,
        "408,429,500-",
        validator=_status_codes(),
        importance=Importance.MEDIUM,
        doc="The status codes after which a request is retried, as 429,500-503,509-",
    )
    .define(
        "http.connect.timeout.ms",
        ConfigType.INT,
        30_000,
        validator=Range(1),
        importance=Importance.MEDIUM,
        doc="The timeout in milliseconds for opening a connection",
    )
    .define(
        "http.request.timeout.ms",
        ConfigType.INT,
        30_000,
        validator=Range(1),
        importance=Importance.MEDIUM,
        doc="The timeout in milliseconds for a response",
    )
    .define(
        "idempotency.key.header",
        ConfigType.STRING,
        "Idempotency-Key",
        importance=Importance.LOW,
        doc="The header with topic-partition-offset of the record, or of the first and "
        "the last one of a batch; empty for no header",
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
        doc="What to do with records that cannot be delivered: fail, skip or log them; "
        "with a dead letter queue, they are written to it unless they are skipped",
    )
)
