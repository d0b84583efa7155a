"""PlatformSettings: addresses and settings of the services; from a file, the environment
and flags.

Flags take precedence over variables, variables over the file, and the file over defaults. All
settings are listed in README.md. The file is ./millstream.toml, or that of MILLSTREAM_CONFIG or
--config:

port-base = 20000

[broker]                         # any setting of the service, under its own name
"log.retention.hours" = 24

The variable of this setting is MILLSTREAM_BROKER_LOG_RETENTION_HOURS, its flag
`--set broker.log.retention.hours=24`.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from broker.errors import ConfigError

FILE = Path("millstream.toml")
PREFIX = "MILLSTREAM_"
FILE_VARIABLE = "MILLSTREAM_CONFIG"
DATA_DIRECTORY = "millstream-data"
# The services in the order of their start, with their default ports.
PORTS = {"broker": 9092, "registry": 8081, "connect": 8083, "sql": 8088}
# Services that have their own settings.
CONFIGURABLE = ("broker", "connect", "sql")
# Variables of single commands and of our tests.
OTHER_VARIABLES = frozenset(
    PREFIX + name
    for name in (
        "BOOTSTRAP",
        "CONFIG",
        "CONNECT",
        "REGISTRY",
        "REGISTRY_AUTH",
        "SQL_USER",
        "COMPAT_TARGET",
        "KAFKA_VERSION",
    )
)
PORT_MAX = 65_535

Layer = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSettings:
    """The settings of `millstream up`, from which `status` and `doctor` read the addresses."""

    host: str = "127.0.0.1"
    data_dir: str = DATA_DIRECTORY
    allowed_hosts: str = ""  # with commas
    port_base: int | None = None
    broker_port: int | None = None
    registry_port: int | None = None
    connect_port: int | None = None
    sql_port: int | None = None
    broker: Mapping[str, str] = field(default_factory=dict)
    connect: Mapping[str, str] = field(default_factory=dict)
    sql: Mapping[str, str] = field(default_factory=dict)

    def port(self, service: str) -> int:
        """The port of a service; 0 for any free port."""
        own = getattr(self, f"{service}_port")
        if own is not None:
            return int(own)
        if self.port_base is None:
            return PORTS[service]
        return self.port_base and self.port_base + list(PORTS).index(service)

    def listen(self, service: str) -> str:
        """HOST:PORT of a service."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port(service)}"

    def url(self, service: str) -> str:
        """The URL of an HTTP service."""
        return f"http://{self.listen(service)}"


KEYS = tuple(each.name.replace("_", "-") for each in fields(PlatformSettings))
NUMBERS = tuple(key for key in KEYS if "port" in key)


def load_settings(
    flags: Mapping[str, object], *, environment: Mapping[str, str], file: Path | None = None
) -> PlatformSettings:
    """Settings of all sources; `flags` have the file's keys, None for flags that are not set."""
    merged: Layer = {}
    named = file or (Path(environment[FILE_VARIABLE]) if FILE_VARIABLE in environment else None)
    flag_layer = _layer({key: flags[key] for key in flags if flags[key] is not None}, at="flags")
    for layer in (_read_file(named), _read_environment(environment), flag_layer):
        if "port-base" in layer:  # it replaces ports of sources with lower precedence
            merged = {key: merged[key] for key in merged if not key.endswith("-port")}
        for key, value in layer.items():
            before = merged.get(key)
            both = isinstance(value, dict) and isinstance(before, dict)
            merged[key] = {**before, **value} if both else value  # type: ignore[dict-item]  # both
    return PlatformSettings(**{key.replace("-", "_"): merged[key] for key in merged})  # type: ignore[arg-type]  # checked by _layer


def settings_by_service(pairs: Mapping[str, str]) -> Layer:
    """Settings such as `broker.log.retention.hours`, by service."""
    by_service: Layer = {}
    for name, value in pairs.items():
        service, _, own = name.partition(".")
        if service not in CONFIGURABLE or not own:
            raise ConfigError(
                f'"{name}" is not a setting of a service',
                at="--set",
                hint=f"use SERVICE.NAME=VALUE; the services are {', '.join(CONFIGURABLE)}",
            )
        settings = by_service.setdefault(service, {})
        assert isinstance(settings, dict)
        settings[own] = value
    return by_service


def _read_file(named: Path | None) -> Layer:
    file = named or FILE
    if named is None and not file.exists():
        return {}
    try:
        content = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read the settings: {error}", at=str(file), hint="the file must be valid TOML"
        ) from error
    return _layer(content, at=str(file))


def _read_environment(environment: Mapping[str, str]) -> Layer:
    values: Layer = {}
    services: dict[str, str] = {}
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        words = variable.removeprefix(PREFIX).lower()
        key = words.replace("_", "-")
        service, _, own = words.partition("_")
        if key in KEYS and key not in CONFIGURABLE:
            values[key] = environment[variable]
        elif service in CONFIGURABLE and own:
            services[f"{service}.{own.replace('_', '.')}"] = environment[variable]
        else:
            names = [PREFIX + each.replace("-", "_").upper() for each in KEYS]
            raise _unknown(f'variable "{variable}"', variable, names, at="the environment")
    return _layer(values | settings_by_service(services), at="the environment")


def _layer(content: Mapping[str, object], *, at: str) -> Layer:
    """Check the keys and values of one source."""
    layer: Layer = {}
    for key, value in content.items():
        if key not in KEYS:
            raise _unknown(f'setting "{key}"', key, KEYS, at=at)
        if key in CONFIGURABLE:
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f'"{key}" is not a table',
                    at=at,
                    hint=f'write [{key}], and below it "NAME" = VALUE',
                )
            layer[key] = {name: _text(each) for name, each in _flat(value)}
        else:
            layer[key] = _number(key, value, at=at) if key in NUMBERS else _text(value)
    return layer


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    """Names with their dots: TOML reads a.b = 1 as a table in a table."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(key: str, value: object, *, at: str) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if not 0 <= number <= PORT_MAX:
        raise ConfigError(
            f'"{key}" is "{value}"', at=at, hint=f"a port must be between 0 and {PORT_MAX}"
        )
    return number


def _unknown(description: str, name: str, known: Iterable[str], *, at: str) -> ConfigError:
    near = difflib.get_close_matches(name, known := list(known), n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"the settings are {', '.join(known)}"
    return ConfigError(f"unknown {description}", at=at, hint=hint)
