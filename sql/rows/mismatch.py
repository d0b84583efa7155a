"""Mismatch: a value that is not of its column's type, and where inside of the row it is."""

from broker.errors import SerdeError


class Mismatch(ValueError):
    """Why a value is wrong; `path` grows from the inside to the outside while it is raised."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def described(self) -> str:
        """The path from the row's root, and the reason."""
        return f"${self.path}: {self.reason}"


def inside(part: str, error: ValueError) -> Mismatch:
    """The same error seen from one level further out."""
    if isinstance(error, Mismatch):
        return Mismatch(error.reason, part + error.path)
    return Mismatch(str(error), part)


def undecodable(topic: str, kind: str, error: ValueError) -> SerdeError:
    """The error for bytes that are no row; it says where and why, but never shows the data."""
    return SerdeError(
        f"cannot decode as {kind}: {inside('', error).described()}",
        at=f'topic "{topic}"',
        hint="the topic may hold another format or other columns than declared",
    )


def unencodable(topic: str, kind: str, error: ValueError) -> SerdeError:
    """The error for a row whose values are not of their columns' types."""
    return SerdeError(
        f"cannot encode as {kind}: {inside('', error).described()}",
        at=f'topic "{topic}"',
        hint="give one value of the right type for each column",
    )
