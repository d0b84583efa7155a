"""Mismatch: a value that does not match its column's type, with its path in the row."""

from broker.errors import SerdeError


class Mismatch(ValueError):
    """Why a value is invalid; the path is extended while the error is raised."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def described(self) -> str:
        """The path from the row's root, and the reason."""
        return f"${self.path}: {self.reason}"


def inside(part: str, error: ValueError) -> Mismatch:
    """The same error, with an outer part of the path."""
    if isinstance(error, Mismatch):
        return Mismatch(error.reason, part + error.path)
    return Mismatch(str(error), part)


def undecodable(topic: str, kind: str, error: ValueError) -> SerdeError:
    """The error for bytes that cannot be decoded; it contains the path but never the data."""
    return SerdeError(
        f"cannot decode as {kind}: {inside('', error).described()}",
        at=f'topic "{topic}"',
        hint="the topic may hold another format or other columns than declared",
    )


def unencodable(topic: str, kind: str, error: ValueError) -> SerdeError:
    """The error for a row whose values do not match their columns' types."""
    return SerdeError(
        f"cannot encode as {kind}: {inside('', error).described()}",
        at=f'topic "{topic}"',
        hint="pass one value of the right type for each column",
    )
