"""WorkerConfig: the settings of a worker, from a properties or JSON file.

A worker with `offset.storage.file.filename` is standalone: its connectors come from files and,
until it stops, from requests. A worker with `group.id` is distributed: it stores everything in
three topics.
"""

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from broker.client.config import NetworkConfig
from broker.errors import ConfigError as PropertiesError
from broker.machine import Machine
from broker.properties_file import read_properties
from connect.clients import SERVERS, client_settings, is_client_setting
from connect.config.allowed_paths import AllowedPaths
from connect.config.providers import ConfigProviders
from connect.config.worker_settings import (
    IGNORED,
    PREFIXES,
    PROTECTING,
    distributed_settings,
    standalone_settings,
)
from connect.config_def import ConfigDef
from connect.errors import ConfigError

logger = logging.getLogger(__name__)

STANDALONE_FILE = "offset.storage.file.filename"
DEFAULT_PORT = 8083


def _here() -> AllowedPaths:
    return AllowedPaths(["."])


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The settings of a worker; fields are Kafka's settings with underscores.

    >>> WorkerConfig.parse({"key.converter": "...", "value.converter": "...", "group.id": "a", ...})
    """

    key_converter: str
    value_converter: str
    header_converter: str
    bootstrap_servers: str
    offset_flush_interval_ms: int
    offset_flush_timeout_ms: int
    task_shutdown_graceful_timeout_ms: int
    listeners: list[str]
    rest_advertised_host_name: str | None
    rest_advertised_port: int | None
    rest_allowed_hosts: list[str]
    topic_tracking_enable: bool
    topic_tracking_allow_reset: bool
    topic_creation_enable: bool
    connector_client_config_override_policy: str
    config_providers: list[str]
    plugin_modules: list[str]
    connector_allowed_paths: list[str]
    # Standalone.
    offset_storage_file_filename: str | None = None
    # Distributed.
    group_id: str | None = None
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 60_000
    config_storage_topic: str = ""
    config_storage_replication_factor: int = 3
    offset_storage_topic: str = ""
    offset_storage_replication_factor: int = 3
    offset_storage_partitions: int = 25
    status_storage_topic: str = ""
    status_storage_replication_factor: int = 3
    status_storage_partitions: int = 5
    exactly_once_source_support: str = "disabled"
    # All given settings, with references resolved; they may contain secrets.
    originals: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Where connectors may open files.
    allowed_paths: AllowedPaths = field(default_factory=_here, compare=False)

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> "WorkerConfig":
        """Validate the settings; ConfigError names the first invalid one."""
        resolved = ConfigProviders(settings).resolve(settings)
        _refuse_security(resolved)
        definition = _definition(resolved)
        _warn_of_unknown(resolved, definition)
        values = definition.parse(resolved)
        named = {name.replace(".", "_"): value for name, value in values.items()}
        paths = AllowedPaths(values.strings("connector.allowed.paths") or ["."])
        config = cls(**named, originals=resolved, allowed_paths=paths)  # type: ignore[arg-type]
        for listener in config.listeners:
            parse_listener(listener)
        return config

    @property
    def distributed(self) -> bool:
        """Whether the state is stored in topics."""
        return self.group_id is not None

    @property
    def exactly_once(self) -> bool:
        """Whether source tasks write records and offsets in one transaction."""
        return self.exactly_once_source_support == "enabled"

    @property
    def modules(self) -> list[str]:
        """The modules of allowed plugin classes: the listed ones, and those of its converters."""
        own = (self.key_converter, self.value_converter, self.header_converter)
        return [*self.plugin_modules, *(each.partition(":")[0] for each in own if ":" in each)]

    def worker_id(self, bound_port: int, machine: Machine) -> str:
        """The worker's id: host:port of its listener."""
        host, port = parse_listener(self.listeners[0]) if self.listeners else ("", DEFAULT_PORT)
        shown = self.rest_advertised_host_name or host or machine.host_name
        return f"{shown}:{self.rest_advertised_port or port or bound_port}"

    def member_name(self, bound_port: int, machine: Machine) -> str:
        """A name that is unique among running workers, and the same after a restart."""
        name = f"{self.worker_id(bound_port, machine)} on {machine.host_name}"
        return name if self.listeners else f"{name}, process {machine.process_id}"

    def own_client_settings(self, *, over_network: bool) -> dict[str, object]:
        """Settings of the clients that read and write the worker's own topics.

        They have no prefix. For a broker in this process, network settings are left out.
        """
        own = {
            name: text for name, text in self.originals.items() if is_client_setting("admin", name)
        }
        settings = client_settings("admin", {name: own[name] for name in own if name != SERVERS})
        if not over_network:
            unused = {option.name for option in fields(NetworkConfig)}
            settings = {name: value for name, value in settings.items() if name not in unused}
        return {"client_id": "connect", **settings}


def read_settings(file: Path) -> dict[str, str]:
    """The settings of a file: Java properties, or one JSON object if it is named .json."""
    try:
        text = file.read_text()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read settings: {error}", at=str(file)) from error
    if file.suffix != ".json":
        try:
            return read_properties(text, name=str(file))
        except PropertiesError as error:
            raise ConfigError(error.message, at=error.at, hint=error.hint) from error
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"the settings are not valid JSON: {error}", at=str(file)) from error
    return settings_of(content, at=str(file))


def settings_of(content: object, *, at: str) -> dict[str, str]:
    """A JSON object as settings."""
    if not isinstance(content, dict):
        raise ConfigError("the settings are not a JSON object", at=at)
    return {name: _text(value, at=f"{at}: {name}") for name, value in content.items()}


def _text(value: object, *, at: str) -> str:
    """A JSON value as a string; ConfigError for objects, lists and null."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            raise ConfigError("a setting must be a string, a number or a boolean", at=at)


def parse_listener(listener: str) -> tuple[str, int]:
    """Host and port of "http://host:port"; an empty host means all interfaces."""
    try:
        address = urlsplit(listener if "://" in listener else f"http://{listener}")
        port = address.port
    except ValueError:
        address, port = urlsplit(""), None
    if address.scheme != "http" or port is None:
        raise ConfigError(
            f'listener "{listener}" is not supported', hint='use the form "http://host:port"'
        )
    return address.hostname or "", port


def _definition(settings: Mapping[str, str]) -> ConfigDef:
    if STANDALONE_FILE not in settings:
        return distributed_settings()
    if "group.id" in settings and "config.storage.topic" in settings:
        raise ConfigError(
            f'both "{STANDALONE_FILE}" and "config.storage.topic" are set',
            hint="a worker keeps its state in a file or in topics: remove one of them",
        )
    return standalone_settings()


def _refuse_security(settings: Mapping[str, str]) -> None:
    """Refuse settings that protect the REST API in Kafka Connect: they would have no effect."""
    for name, value in settings.items():
        if name in PROTECTING and value.strip() and value.strip().upper() != "NONE":
            raise ConfigError(
                f'setting "{name}" is not supported',
                hint="the REST API has no authentication: remove the setting to run without it",
            )


def _warn_of_unknown(settings: Mapping[str, str], definition: ConfigDef) -> None:
    """Warn of unknown settings: Kafka Connect accepts them, for plugins, but some are typos."""
    known = [*definition.keys, *IGNORED]
    for name in settings:
        if name in IGNORED:
            logger.warning('worker setting "%s" has no effect', name)
        if name in known or name.startswith(PREFIXES) or is_client_setting("admin", name):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        logger.warning('unknown worker setting "%s"%s', name, hint)
