"""RegistryTransport: sends JSON requests to a registry with one or several URLs."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import httpx
import orjson

from broker import concurrency
from broker.client.retry import Backoff
from broker.client.tls import check_readable
from broker.clock import Clock, SystemClock
from broker.errors import ConfigError, RegistryError

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
ANSWER_BYTES_MAX = 64 << 20
UNREACHABLE = 503
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """The settings of connections to a registry."""

    auth: tuple[str, str] | str | None = None  # user and password, or a bearer token
    headers: Mapping[str, str] = field(default_factory=dict)
    certificates: str | None = None  # a file of trusted authorities, in addition to the system's
    certificate: tuple[str, str] | None = None  # the client's own, and its key
    verify: bool = True  # False trusts any server: for tests only
    timeout_s: float = 10.0
    retries: int = 3
    backoff_first_ms: int = 100
    backoff_longest_ms: int = 5_000


class RegistryTransport:
    """Keeps connections open; thread-safe. URLs are tried in turn, the last good one first.

    Retriable errors (no connection, too busy, a server error) are retried with a growing backoff.
    """

    def __init__(
        self,
        urls: Sequence[str],
        options: TransportOptions,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        """Nothing is sent yet; an invalid URL is a ConfigError."""
        self._urls = [_checked(url) for url in urls]
        if not self._urls:
            raise ConfigError("a registry needs at least one URL")
        self._options = options
        self._clock = clock or SystemClock()
        self._backoff = Backoff(
            options.backoff_first_ms, options.backoff_longest_ms, random or Random()
        )
        self._first = 0  # the URL that responded last; a race costs only one more attempt
        self._waiting = concurrency.Condition()
        secure = any(url.startswith("https:") for url in self._urls)
        self._client = _client(options, secure=secure)

    @property
    def urls(self) -> Sequence[str]:
        """The URLs, as given."""
        return self._urls

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
    ) -> object:
        """The JSON of the response; RegistryError if it is an error or no server responds."""
        content = None if body is None else orjson.dumps(body)
        failures = 0
        while True:
            found = self._round(method, path, query or {}, content)
            if not isinstance(found, RegistryError):
                return found
            failures += 1
            if failures > self._options.retries:
                raise found
            with self._waiting:
                self._clock.wait(self._waiting, self._backoff.delay_ms(failures))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _round(
        self, method: str, path: str, query: Mapping[str, str], content: bytes | None
    ) -> object:
        """The response of the first server that responds, or the last retriable error."""
        last = RegistryError(UNREACHABLE, "no address was tried")
        for turn in range(len(self._urls)):
            index = (self._first + turn) % len(self._urls)
            url = self._urls[index]
            try:
                status, answer = self._exchange(method, url + path, query, content)
            except httpx.HTTPError as error:
                last = _unreachable(url, error)
                continue
            if status < 300:
                self._first = index
                return _parsed(url, answer)
            last = _refusal(url, status, answer)
            if status not in _AGAIN:
                raise last
        return last

    def _exchange(
        self, method: str, url: str, query: Mapping[str, str], content: bytes | None
    ) -> tuple[int, bytes]:
        with self._client.stream(method, url, params=query, content=content) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                size += len(part)
                if size > ANSWER_BYTES_MAX:
                    raise RegistryError(
                        UNREACHABLE, f'the answer of "{url}" has more than {ANSWER_BYTES_MAX} bytes'
                    )
                parts.append(part)
            return response.status_code, b"".join(parts)


def _client(options: TransportOptions, *, secure: bool) -> httpx.Client:
    headers = {"Accept": f"{CONTENT_TYPE}, application/json", "Content-Type": CONTENT_TYPE}
    auth = None
    if isinstance(options.auth, str):
        headers["Authorization"] = f"Bearer {options.auth}"
    elif options.auth is not None:
        auth = httpx.BasicAuth(*options.auth)
    try:
        return httpx.Client(
            headers={**headers, **options.headers},
            auth=auth,
            # Loading the system's authorities is slow; redirects are not followed.
            verify=_trust(options) if secure else False,
            timeout=options.timeout_s,
        )
    except OSError as error:
        raise ConfigError(
            f"the certificates of the registry's client cannot be read: {error}",
            hint="give the paths of PEM files",
        ) from error


def _trust(options: TransportOptions) -> ssl.SSLContext | bool:
    if not options.verify and options.certificate is None:
        return False
    context = httpx.create_ssl_context(verify=options.verify)
    for path in (options.certificates, *(options.certificate or ())):
        check_readable(path)
    if options.certificates is not None:
        context.load_verify_locations(options.certificates)
    if options.certificate is not None:
        context.load_cert_chain(*options.certificate)
    return context


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigError(f'the registry\'s URL "{url}" is invalid: {error}') from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError(
            f'the registry\'s URL "{url}" is invalid',
            hint='give it as "http://host:port" or "https://host:port"',
        )
    return url.rstrip("/")


def _unreachable(url: str, error: httpx.HTTPError) -> RegistryError:
    hint = "check that it is running and that the URL is correct"
    if "certificate" in str(error).lower():
        hint = (
            "pass certificates=, a PEM file with the CA that signed the registry's certificate; "
            "or certificate=, a client certificate and its key, if the registry requires one"
        )
    return RegistryError(
        UNREACHABLE,
        f'the schema registry at "{url}" does not answer: {str(error) or type(error).__name__}',
        hint=hint,
    )


def _parsed(url: str, answer: bytes) -> object:
    if not answer:
        return None
    try:
        found: object = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise _no_registry(url) from error
    return found


def _no_registry(url: str) -> RegistryError:
    return RegistryError(
        UNREACHABLE,
        f'"{url}" does not respond like a schema registry',
        hint="check that the URL is that of a schema registry",
    )


def _refusal(url: str, status: int, answer: bytes) -> RegistryError:
    """The error in a response: {"error_code": 40401, "message": "..."}."""
    try:
        found = orjson.loads(answer)
    except orjson.JSONDecodeError:
        found = None
    code = found.get("error_code") if isinstance(found, dict) else None
    if not isinstance(found, dict) or type(code) is not int or not 100 <= code <= 99_999:
        text = answer[:200].decode(errors="replace").strip()
        return RegistryError(
            status,
            f'the schema registry at "{url}" answered with status {status}: {text}',
            hint=_HINTS.get(status, "check that the URL is that of a schema registry"),
        )
    return RegistryError(code, str(found.get("message", "")), hint=_HINTS.get(code, ""))


_HINTS = {
    401: "give auth=(user, password) or auth=token",
    403: "this user is not authorized; ask the administrator of the registry",
    404: "check that the URL is that of a schema registry",
    409: "change the schema so that old records stay readable, or lower the subject's "
    "compatibility level",
}
