"""The version of Millstream, which several services report."""

from importlib.metadata import PackageNotFoundError, version


def own_version(unknown: str = "") -> str:
    """The installed version."""
    try:
        return version("millstream")
    except PackageNotFoundError:
        return unknown
