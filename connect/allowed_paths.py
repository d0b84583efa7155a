"""AllowedPaths: the directories in which connectors may open files.

Whoever may create a connector could otherwise read and write every file that the worker can. A
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
# A sink that could write them could have the worker run what it has written.
CODE_SUFFIXES = frozenset({".py", ".pyc", ".pyd", ".pth", ".so"})


class AllowedPaths:
    """Some directories, and everything below them."""

    def __init__(self, directories: Iterable[str | Path]) -> None:
        """Relative ones are below the working directory of the worker."""
        self.directories = tuple(dict.fromkeys(Path(os.path.realpath(d)) for d in directories))

    def add(self, path: str | Path) -> None:
        """One more, that the owner of the worker names."""
        self.directories = tuple(dict.fromkeys((*self.directories, Path(os.path.realpath(path)))))

    def allow(self, path: str | Path) -> bool:
        """Whether a file or folder may be opened; links lead where they lead now."""
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            return False
        return any(real.is_relative_to(directory) for directory in self.directories)

    def refusal(self, path: str | Path) -> str:
        """Why a path is refused."""
        allowed = ", ".join(map(str, self.directories))
        return f"{path} is not in a directory that connectors may use ({SETTING}: {allowed})"

    def errors(self, connector: type[Connector], config: Mapping[str, str]) -> dict[str, list[str]]:
        """What is wrong with the files that a configuration names, by setting."""
        found: dict[str, list[str]] = {}
        writes = issubclass(connector, SinkConnector)
        for setting, paths in connector().local_paths(config).items():
            for path in paths:
                if not self.allow(path):
                    found.setdefault(setting, []).append(self.refusal(path))
                elif writes and Path(os.path.realpath(path)).suffix in CODE_SUFFIXES:
                    found.setdefault(setting, []).append(f"{path}: sinks may not write code")
        return found

    def check(self, connector: type[Connector], config: Mapping[str, str]) -> None:
        """ConfigError if a configuration names a file that may not be opened."""
        for setting, errors in self.errors(connector, config).items():
            raise ConfigError(
                errors[0],
                at=f'"{setting}"',
                hint=f'add the directory to "{SETTING}" of the worker, or use another file',
            )
