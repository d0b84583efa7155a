"""AllowedPaths: the directories in which connectors may open files.

Otherwise, anyone who may create a connector could read and write every file that the worker can. A
connector names the files that it opens (`Connector.local_paths`), and the worker refuses those
outside of `connector.allowed.paths`: when a configuration is validated, and again whenever the
connector or one of its tasks starts. Links and ".." are followed first. "/" allows every file.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from connect.api import Connector, SinkConnector
from connect.errors import ConfigError

SETTING = "connector.allowed.paths"
# A sink that may write Python files could make the worker run them.
CODE_SUFFIXES = frozenset({".py", ".pyc", ".pyd", ".pth", ".so"})


class AllowedPaths:
    """Directories, including everything below them."""

    def __init__(self, directories: Iterable[str | Path]) -> None:
        """Relative paths are relative to the working directory of the worker."""
        self.directories = tuple(dict.fromkeys(Path(os.path.realpath(d)) for d in directories))

    def add(self, path: str | Path) -> None:
        """Add a directory from the worker's settings."""
        self.directories = tuple(dict.fromkeys((*self.directories, Path(os.path.realpath(path)))))

    def allow(self, path: str | Path) -> bool:
        """Whether a file or directory may be opened; symbolic links are resolved."""
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            return False
        return any(real.is_relative_to(directory) for directory in self.directories)

    def refusal(self, path: str | Path) -> str:
        """The reason why a path is refused."""
        allowed = ", ".join(map(str, self.directories))
        return f"{path} is not in a directory that connectors may use ({SETTING}: {allowed})"

    def errors(self, connector: type[Connector], config: Mapping[str, str]) -> dict[str, list[str]]:
        """Errors of the files that a configuration names, by setting."""
        found: dict[str, list[str]] = {}
        writes = issubclass(connector, SinkConnector)
        for setting, paths in connector().local_paths(config).items():
            for path in paths:
                if not self.allow(path):
                    found.setdefault(setting, []).append(self.refusal(path))
                elif writes and Path(os.path.realpath(path)).suffix in CODE_SUFFIXES:
                    found.setdefault(setting, []).append(
                        f"{path}: sinks may not write Python files"
                    )
        return found

    def check(self, connector: type[Connector], config: Mapping[str, str]) -> None:
        """Raise ConfigError if a configuration names a file that may not be opened."""
        for setting, errors in self.errors(connector, config).items():
            raise ConfigError(
                errors[0],
                at=f'"{setting}"',
                hint=f'add the directory to "{SETTING}" of the worker, or use another file',
            )
