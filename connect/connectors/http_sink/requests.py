"""RequestMaker: the requests of the HTTP sink for records; sends nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from connect.config_def import Settings
from connect.connectors.http_sink.definition import DEFINITION
from connect.connectors.json_text import json_text
from connect.data import text_of
from connect.errors import ConfigError, ConnectError, DataError
from connect.records import SinkRecord

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
_PLACEHOLDERS = ("topic", "key")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and the records it delivers."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    records: Sequence[SinkRecord]


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """A record that cannot be sent, and why."""

    record: SinkRecord
    error: ConnectError


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that the settings skip."""

    record: SinkRecord


Step = Request | Undeliverable | SkippedRecord


class RequestMaker:
    """Groups records into requests; the same records always give the same requests."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """Reads the settings; ConfigError for invalid ones."""
        settings = DEFINITION.parse(config)
        self._url = _checked_url(settings.text("http.api.url"))
        self._method = settings.text("request.method").upper()
        self._is_json = settings.text("request.body.format").lower() == "json"
        self._headers = _headers(settings, self._is_json)
        self._key_header = settings.text("idempotency.key.header")
        self._on_null = settings.text("behavior.on.null.values").lower()
        self._batch_size = settings.integer("batch.max.size")
        # Not from the definition, which trims strings: a separator may be a newline.
        prefix = _unescaped(config.get("batch.prefix", ""))
        suffix = _unescaped(config.get("batch.suffix", ""))
        separator = _unescaped(config.get("batch.separator", ","))
        if self._is_json and settings.boolean("batch.json.as.array") and not (prefix or suffix):
            prefix, separator, suffix = "[", ",", "]"
        self._prefix, self._separator, self._suffix = (
            text.encode() for text in (prefix, separator, suffix)
        )

    def steps(self, records: Sequence[SinkRecord]) -> Iterator[Step]:
        """The requests for the records and the skipped ones, in order."""
        batch: list[SinkRecord] = []
        bodies: list[bytes] = []
        place: object = None
        for record in records:
            step = self._null_step(record)
            if step is None:
                try:
                    url, body = self.url_of(record), self._body_of(record)
                except ConnectError as error:
                    step = Undeliverable(record, error)
            if batch and (
                step is not None
                or len(batch) == self._batch_size
                or place != (record.topic, record.partition, url)
            ):
                yield self._request(batch, bodies)
                batch, bodies = [], []
            if step is not None:
                yield step
                continue
            place = (record.topic, record.partition, url)
            batch.append(record)
            bodies.append(body)
        if batch:
            yield self._request(batch, bodies)

    def url_of(self, record: SinkRecord) -> str:
        """The URL with the record's topic and key."""

        def filled(found: re.Match[str]) -> str:
            if found[1] == "topic":
                return quote(record.topic, safe="")
            if record.key is None:
                raise DataError("the URL needs the record's key, but the record has none")
            return quote(text_of(record.key), safe="")

        return _PLACEHOLDER.sub(filled, self._url)

    def _null_step(self, record: SinkRecord) -> Step | None:
        """The step for a record without a value; None for others."""
        if record.value is not None:
            return None
        if self._on_null == "fail":
            return Undeliverable(record, DataError("the record has no value"))
        if self._on_null != "delete":
            return SkippedRecord(record)
        try:
            url = self.url_of(record)
        except ConnectError as error:
            return Undeliverable(record, error)
        return Request("DELETE", url, self._headers_of([record]), b"", [record])

    def _body_of(self, record: SinkRecord) -> bytes:
        if self._is_json:
            return json_text(record.value)
        value = record.value
        return value if isinstance(value, bytes) else text_of(value).encode()

    def _request(self, records: list[SinkRecord], bodies: list[bytes]) -> Request:
        body = self._prefix + self._separator.join(bodies) + self._suffix
        url = self.url_of(records[0])
        return Request(self._method, url, self._headers_of(records), body, records)

    def _headers_of(self, records: Sequence[SinkRecord]) -> Mapping[str, str]:
        if not self._key_header:
            return self._headers
        first, last = records[0], records[-1]
        key = f"{first.topic}-{first.partition}-{first.offset}"
        if len(records) > 1:
            key += f"-{last.offset}"
        return {**self._headers, self._key_header: key}


def _checked_url(url: str) -> str:
    for name in _PLACEHOLDER.findall(url):
        if name not in _PLACEHOLDERS:
            raise ConfigError(
                f'unknown placeholder "${{{name}}}" in http.api.url',
                hint="the placeholders are ${topic} and ${key}",
            )
    parts = urlsplit(_PLACEHOLDER.sub("x", url))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f'http.api.url "{url}" is not a valid URL', hint="use the form http://host:port/path"
        )
    return url


def _headers(settings: Settings, is_json: bool) -> dict[str, str]:
    kind = "application/json" if is_json else "text/plain; charset=utf-8"
    headers = {"Content-Type": kind}
    text = settings.text("headers")
    for entry in text.split(settings.text("header.separator")) if text else ():
        name, colon, value = entry.partition(":")
        if not colon or not name.strip():
            raise ConfigError(
                f'"{entry}" in headers is not a valid header',
                hint="use the form name:value|name:value",
            )
        # Header names are case-insensitive.
        headers = {key: one for key, one in headers.items() if key.lower() != name.strip().lower()}
        headers[name.strip()] = value.strip()
    if settings.text("auth.type").upper() == "BEARER":
        headers["Authorization"] = f"Bearer {settings.password('bearer.token')}"
    return headers


def _unescaped(text: str) -> str:
    for escape, sign in _ESCAPES.items():
        text = text.replace(escape, sign)
    return text
