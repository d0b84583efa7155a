"""Content negotiation: the media types of requests and responses."""

from collections.abc import Sequence

from broker.rest.errors import HttpError

ANYTHING = frozenset({"*/*", "application/*", "*"})
ACCEPTED_MAX = 50


def media_name(media_type: str) -> str:
    """A media type without its parameters."""
    return media_type.partition(";")[0].strip().lower()


def answer_type(accept: str, offered: Sequence[str]) -> str:
    """The offered media type that a client prefers; 406 if it accepts none of them.

    Clients that accept anything get the first one.
    """
    wanted = [_preference(each) for each in accept.split(",")[:ACCEPTED_MAX] if each.strip()]
    for name, quality in sorted(wanted, key=lambda pair: -pair[1]):
        if quality > 0 and name in ANYTHING:
            return offered[0]
        if quality > 0 and name in offered:
            return name
    if wanted:
        raise HttpError(406)
    return offered[0]


def _preference(entry: str) -> tuple[str, float]:
    """A media range with its quality; an invalid number counts as 1."""
    quality = 1.0
    for parameter in entry.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 1.0
    return media_name(entry), quality
