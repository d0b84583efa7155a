"""Reply: status, headers and content of a response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

# The values of JSON.
Json = object


class PlainText(str):
    """Content that is sent unchanged, not as JSON."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; without content it has no body."""

    content: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = ""  # default: that of the service, or the one the client prefers

    def response(self, media_type: str, encode: Callable[[Json], bytes]) -> Response:
        """The HTTP response; `media_type` is the default."""
        headers = dict(self.headers)
        if self.content is None:
            return Response(status_code=self.status, headers=headers)
        is_text = isinstance(self.content, PlainText)
        body = str(self.content).encode() if is_text else encode(self.content)
        return Response(body, self.status, headers, self.media_type or media_type)
