"""Config providers: settings that refer to their value, such as a password in a file.

    ${file:/etc/secrets.properties:db.password}     a setting of a properties file
    ${dir:/run/secrets:db-password}                 the content of a file
    ${env:DB_PASSWORD}                              an environment variable

Only providers in the worker's configuration can be used: otherwise, anyone who may create a
connector could read every file that the worker can. For the same reason file providers read only
files in their `allowed.paths` or, without that, in the worker's `connector.allowed.paths`;
references in the worker's own settings are trusted. Stores and the REST API hold the references;
connectors and tasks get the values. A reference that cannot be resolved is kept as it is.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from broker.errors import ConfigError as PropertiesError
from broker.linear_patterns import compile_pattern
from broker.properties_file import read_properties
from connect.config.allowed_paths import AllowedPaths
from connect.config_def import with_prefix
from connect.errors import ConfigError

EVERYWHERE = AllowedPaths(["/"])
REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}]*)\}")
JAVA_PACKAGE = "org.apache.kafka.common.config.provider."
PREFIX = "config.providers"


class ConfigProvider(Protocol):
    """Resolves references to values."""

    def find(self, path: str, key: str) -> str | None:
        """The value of a key; None if there is none."""
        ...


class FileProvider:
    """Settings of properties files; with `allowed.paths` only of those and below them."""

    def __init__(self, parameters: Mapping[str, str], default: AllowedPaths) -> None:
        self._allowed = _Allowed(parameters, default)

    def find(self, path: str, key: str) -> str | None:
        if not self._allowed.allow(path):
            return None
        try:
            return read_properties(Path(path).read_text(), name=path).get(key)
        except (OSError, ValueError, PropertiesError) as error:
            raise ConfigError(f"Could not read properties from file {path}") from error


class DirectoryProvider:
    """Files whose whole content is a value; with `allowed.paths` only those and below them."""

    def __init__(self, parameters: Mapping[str, str], default: AllowedPaths) -> None:
        self._allowed = _Allowed(parameters, default)

    def find(self, path: str, key: str) -> str | None:
        """The content of the file `key` in the directory `path`; never of a file outside."""
        file = Path(path) / key
        if file.parent != Path(path) or not self._allowed.allow(str(file)):
            return None
        try:
            return file.read_text() if file.is_file() else None
        except (OSError, ValueError) as error:
            raise ConfigError(f"Could not read file {file} for property {key}") from error


class EnvironmentProvider:
    """Environment variables; with `allowlist.pattern` only those whose whole name matches."""

    def __init__(self, parameters: Mapping[str, str], default: AllowedPaths) -> None:
        del default
        text = parameters.get("allowlist.pattern", ".*")
        try:
            self._pattern = compile_pattern(text)
        except re.error as error:
            raise ConfigError(
                f'"allowlist.pattern" is not a valid pattern: "{text}": {error}'
            ) from error

    def find(self, path: str, key: str) -> str | None:
        """An environment variable; the path is ignored."""
        if path or not self._pattern.fullmatch(key):
            return None
        return os.environ.get(key)


PROVIDERS: Mapping[str, Callable[[Mapping[str, str], AllowedPaths], ConfigProvider]] = {
    "FileConfigProvider": FileProvider,
    "DirectoryConfigProvider": DirectoryProvider,
    "EnvVarConfigProvider": EnvironmentProvider,
}


class ConfigProviders:
    """The providers of a worker, by the names that references use."""

    def __init__(self, settings: Mapping[str, str], allowed: AllowedPaths = EVERYWHERE) -> None:
        """The providers in the worker's settings; ConfigError for an unknown one.

        `allowed` applies to providers without `allowed.paths`.
        """
        names = [name.strip() for name in settings.get(PREFIX, "").split(",") if name.strip()]
        self._providers = {name: _provider(name, settings, allowed) for name in names}

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """The settings with references replaced by their values."""
        return {name: self._resolve(text) for name, text in config.items()}

    def restore(
        self, resolved: Mapping[str, str], written: Mapping[str, str], *, values: Mapping[str, str]
    ) -> dict[str, str]:
        """Settings derived from `values`, with the original references in place of their values.

        Most settings of a task are copies of its connector's: no secret may be stored.
        """
        return {
            name: written[name] if text == values.get(name) and name in written else text
            for name, text in resolved.items()
        }

    def _resolve(self, text: str) -> str:
        return REFERENCE.sub(self._replacement, text) if "${" in text else text

    def _replacement(self, reference: re.Match[str]) -> str:
        provider = self._providers.get(reference[1])
        found = None if provider is None else provider.find(reference[2] or "", reference[3])
        return reference[0] if found is None else found


def _provider(name: str, settings: Mapping[str, str], allowed: AllowedPaths) -> ConfigProvider:
    prefix = f"{PREFIX}.{name}."
    class_name = settings.get(f"{prefix}class")
    if not class_name:
        raise ConfigError(
            f'config provider "{name}" has no class',
            hint=f'set "{prefix}class" to one of {", ".join(PROVIDERS)}',
        )
    provider = PROVIDERS.get(class_name.removeprefix(JAVA_PACKAGE))
    if provider is None:
        raise ConfigError(
            f'config provider "{name}" has an unknown class "{class_name}"',
            hint=f"the classes are {', '.join(PROVIDERS)}",
        )
    return provider(with_prefix(f"{prefix}param.", settings), allowed)


class _Allowed:
    """The paths of one provider: its own, or the worker's."""

    def __init__(self, parameters: Mapping[str, str], default: AllowedPaths) -> None:
        text = parameters.get("allowed.paths", "")
        self._own = AllowedPaths(each.strip() for each in text.split(",")) if text else None
        self._default = default

    def allow(self, path: str) -> bool:
        """Whether a path may be read; paths that the provider does not allow are not found."""
        if self._own is not None:
            return self._own.allow(path)
        if not self._default.allow(path):
            raise ConfigError(
                self._default.refusal(path),
                hint="set config.providers.NAME.param.allowed.paths of the worker to allow more "
                "paths",
            )
        return True
