"""StatusCodes: a set of HTTP status codes, written as "429,500-503,509-"."""

from connect.errors import ConfigError

_LAST = 599


class StatusCodes:
    """Codes and ranges of codes."""

    __slots__ = ("_ranges",)

    def __init__(self, text: str) -> None:
        """Parse the codes; ConfigError names an invalid entry."""
        entries = [entry.strip() for entry in text.split(",")]
        self._ranges = [_range_of(entry) for entry in entries if entry]

    def __contains__(self, code: int) -> bool:
        return any(code in codes for codes in self._ranges)


def _range_of(entry: str) -> range:
    first, dash, last = (part.strip() for part in entry.partition("-"))
    if not first.isdecimal() or not (last == "" or last.isdecimal()):
        raise ConfigError(f'"{entry}" is neither a status code nor a range of status codes')
    if not dash:
        return range(int(first), int(first) + 1)
    end = int(last) if last else _LAST
    if end < int(first):
        raise ConfigError(f'the range "{entry}" is empty')
    return range(int(first), end + 1)
