"""TopicPattern: regular expressions over names, in RE2's syntax, matched in linear time.

Patterns come from clients and are matched under the broker's lock, so every match must be cheap:
RE2 needs at most (size of the pattern) times (length of the name), and both are limited. Kafka also
uses RE2. A name must match as a whole.

A large pattern can still need milliseconds for a long name. `PatternMatches` caches matches, and
matches many names one by one, with other requests in between.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from broker.errors import BrokerError, ErrorCode
from broker.linear_patterns import LinearPattern, PatternError

TEXT_LENGTH_MAX = 2000
MEMORY_BYTES = 64 * 1024  # of a compiled pattern; it also limits the time

PATTERNS_MAX = 200  # patterns with cached matches


class TopicPattern:
    """A compiled pattern; INVALID_REGULAR_EXPRESSION if it cannot be compiled."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            if len(text) > TEXT_LENGTH_MAX:
                raise PatternError(f"it has more than {TEXT_LENGTH_MAX} characters")
            self._compiled = LinearPattern(text, memory_bytes=MEMORY_BYTES)
        except PatternError as error:
            raise BrokerError(
                ErrorCode.INVALID_REGULAR_EXPRESSION, f'pattern "{text[:200]}" is invalid: {error}'
            ) from None

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        return self._compiled.matches(name)


@dataclass(slots=True)
class _Matched:
    pattern: TopicPattern
    names: dict[str, bool] = field(default_factory=dict)  # the names that were matched


class PatternMatches:
    """Caches which of the existing names match the most recently used patterns."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        self._known: OrderedDict[str, _Matched] = OrderedDict()

    def compiled(self, text: str) -> TopicPattern:
        """The compiled pattern; INVALID_REGULAR_EXPRESSION if it cannot be compiled."""
        return self._entry(text).pattern

    def matching(self, text: str) -> set[str]:
        """All existing names that match."""
        matched = self._entry(text)
        for _ in self._match_names(matched):
            pass
        return {name for name, fits in matched.names.items() if fits}

    def prepare(self, text: str) -> Iterator[None]:
        """Match all names, one per step."""
        return self._match_names(self._entry(text))

    def prepare_all(self) -> Iterator[None]:
        """Match new names with every pattern, one per step."""
        for matched in list(self._known.values()):
            yield from self._match_names(matched)

    def _entry(self, text: str) -> _Matched:
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = _Matched(TopicPattern(text))
            if len(self._known) > PATTERNS_MAX:
                self._known.popitem(last=False)
        self._known.move_to_end(text)
        return found

    def _match_names(self, matched: _Matched) -> Iterator[None]:
        names = list(self._names())
        for name in names:
            if name not in matched.names:
                matched.names[name] = matched.pattern.matches(name)
                yield
        if len(matched.names) > len(names):
            there = set(names)
            matched.names = {name: fits for name, fits in matched.names.items() if name in there}
