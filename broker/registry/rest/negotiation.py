"""Which media types are taken and given."""

from broker.registry.rest.answers import MEDIA_TYPES, V1_JSON, http_refusal

# A body without a type counts as one of bytes; both are read as JSON.
CONTENT_TYPES = frozenset({*MEDIA_TYPES, "application/octet-stream", ""})
ANYTHING = frozenset({"*/*", "application/*"})
ACCEPTED_MAX = 50


def answer_type(accept: str) -> str:
    """The media type of the answer that a client likes best; 406 if it takes none of ours."""
    wanted = [_preference(each) for each in accept.split(",")[:ACCEPTED_MAX] if each.strip()]
    for name, quality in sorted(wanted, key=lambda pair: -pair[1]):
        if quality > 0 and name in ANYTHING:
            return V1_JSON
        if quality > 0 and name in MEDIA_TYPES:
            return name
    if wanted:
        raise http_refusal(406)
    return V1_JSON


def check_content_type(content_type: str) -> None:
    """415 for a body whose content type is not JSON."""
    if _name(content_type) not in CONTENT_TYPES:
        raise http_refusal(415)


def _name(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


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
    return _name(entry), quality
