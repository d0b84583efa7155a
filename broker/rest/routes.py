"""Route: one row of a service's table; RouteTable: finds the route of a request."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from re import Pattern
from typing import Generic, TypeVar

from starlette.routing import compile_path

from broker.rest.errors import HttpError
from broker.rest.negotiation import media_name

Served = TypeVar("Served")
RequestT = TypeVar("RequestT")


@dataclass(frozen=True, slots=True)
class Body:
    """The bodies that a route accepts."""

    bytes_max: int
    # Media types; an empty string means a missing Content-Type. None: any that the guard allows.
    content_types: frozenset[str] | None = None
    empty_of_any_type: bool = False  # an empty body needs none of these Content-Types

    def takes(self, content_type: str) -> bool:
        """Whether a body may have this Content-Type."""
        return self.content_types is None or media_name(content_type) in self.content_types


@dataclass(frozen=True)
class Route(Generic[Served, RequestT]):
    """The handler of one method of one path."""

    method: str
    path: str  # variables in braces; a variable {name:path} may contain slashes
    # Called in a thread; on the event loop if it is async, or if `at_once` is true for the request.
    handler: Callable[[Served, RequestT], object]
    body: Body | None = None  # without it the body is not read
    at_once: Callable[[RequestT], bool] | None = None  # for lookups
    media_type: str = ""  # of the response; default: the one the client prefers
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", inspect.iscoroutinefunction(self.handler))


@dataclass(frozen=True)
class Resource(Generic[Served, RequestT]):
    """A path with the routes of its methods."""

    path: str
    pattern: Pattern[str]
    routes: dict[str, Route[Served, RequestT]]

    def allowed(self, *, with_options: bool) -> list[str]:
        """The methods for an Allow header."""
        found = set(self.routes)
        if with_options:
            found |= {"OPTIONS", *({"HEAD"} if "GET" in found else ())}
        return sorted(found)


class RouteTable(Generic[Served, RequestT]):
    """The routes of a service by path."""

    def __init__(self, routes: Sequence[Route[Served, RequestT]]) -> None:
        resources: dict[str, Resource[Served, RequestT]] = {}
        for route in routes:
            known = resources.get(route.path)
            if known is None:
                known = Resource(route.path, compile_path(route.path)[0], {})
                resources[route.path] = known
            assert route.method not in known.routes, f"{route.method} {route.path} twice"
            known.routes[route.method] = route
        self._plain = {path: each for path, each in resources.items() if "{" not in path}
        self._others = [each for path, each in resources.items() if "{" in path]

    def find(self, path: str) -> tuple[Resource[Served, RequestT], dict[str, str]]:
        """The resource of a path, and the values of its variables; 404 if there is none."""
        plain = self._plain.get(path)
        if plain is not None:
            return plain, {}
        for resource in self._others:
            if found := resource.pattern.match(path):
                return resource, found.groupdict()
        raise HttpError(404, path=path)
