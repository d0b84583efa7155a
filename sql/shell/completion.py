"""Completion of keywords, functions with their signatures, streams, tables and columns."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from broker.errors import MillstreamError
from sql.functions.builtin import builtin_functions
from sql.parse.tokens import TOKEN
from sql.shell.rendering import type_text
from sql.shell.session import EntityJson
from sql.shell.statements import COMMAND_WORDS
from sql.syntax.keywords import RESERVED, STATEMENT_WORDS
from sql.variables import split_statements

# Words that are keywords only in some positions.
OTHER_WORDS = frozenset(
    {
        *("ADD", "ARRAY", "BIGINT", "BOOLEAN", "BYTES", "CHANGES", "COLUMN", "DATE", "DECIMAL"),
        *("DOUBLE", "EMIT", "ESCAPE", "FINAL", "FUNCTION", "FUNCTIONS", "GRACE", "HEADER"),
        *("HEADERS", "IF", "INT", "INTEGER", "KEY", "MAP", "PARTITION", "PERIOD", "PLUGINS"),
        *("PRIMARY", "REPLACE", "SCHEMA", "SESSION", "SINK", "SOURCE", "STRING", "STRUCT"),
        *("SUBJECT", "TABLES", "TIME", "TIMEOUT", "TIMESTAMP", "TYPE", "TYPES", "VARIABLES"),
    }
)
KEYWORDS = sorted(RESERVED | OTHER_WORDS | set(STATEMENT_WORDS))
COMMANDS = sorted((COMMAND_WORDS - {"REQUEST"}) | {"REQUEST-PIPELINING"})
# Words that precede the name of a stream or table.
BEFORE_SOURCES = frozenset({"FROM", "JOIN", "INTO", "DESCRIBE"})
BEFORE_DROPPED = (("DROP", "STREAM"), ("DROP", "TABLE"), ("ALTER", "STREAM"), ("ALTER", "TABLE"))
SOURCES_STATEMENTS = ("DESCRIBE STREAMS;", "DESCRIBE TABLES;")


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A stream or table, with the names and types of its columns."""

    name: str
    kind: str
    columns: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class SourceNames:
    """The streams and tables; fetched again after changes."""

    execute: Callable[[str], list[EntityJson]]
    _known: dict[str, KnownSource] = field(default_factory=dict)
    _fresh: bool = False

    def forget(self) -> None:
        """Fetch them again on next use."""
        self._fresh = False

    @property
    def sources(self) -> dict[str, KnownSource]:
        """The sources by name; the last known ones if the server does not respond."""
        if not self._fresh:
            self._fresh = True
            try:
                self._known = dict(self._fetched())
            except MillstreamError:
                return self._known
        return self._known

    def _fetched(self) -> Iterator[tuple[str, KnownSource]]:
        for statement in SOURCES_STATEMENTS:
            for entity in self.execute(statement):
                for each in entity.get("sourceDescriptions") or ():
                    columns = tuple(
                        (str(column.get("name")), type_text(column.get("schema")))
                        for column in each.get("fields") or ()
                    )
                    name = str(each.get("name"))
                    yield name, KnownSource(name, str(each.get("type", "")).lower(), columns)


class SqlCompleter(Completer):
    """Completes the word before the cursor by the text before it."""

    def __init__(self, catalog: SourceNames) -> None:
        self._catalog = catalog
        self._functions = [
            (each.name, str(each.overloads[0].signature)) for each in builtin_functions()
        ]

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """The possible completions."""
        parts = split_statements(document.text_before_cursor)
        before = parts[-1].text if parts and not parts[-1].is_complete else ""
        if document.text_before_cursor[-1:].isspace():
            before += " "
        tokens = [match for match in TOKEN.finditer(before) if match.lastgroup != "space"]
        if any(match.lastgroup == "open" for match in tokens):
            return  # inside quotes or a comment
        word = ""
        if tokens and tokens[-1].end() == len(before) and tokens[-1].lastgroup == "word":
            word = tokens.pop().group()
        typed = [match.group() for match in tokens]
        for text, shown, meta in self._candidates(typed, document.text):
            if text.upper().startswith(word.upper()) and text.upper() != word.upper():
                lower = word.islower() and bool(word)
                yield Completion(
                    text.lower() if lower else text, -len(word), display=shown, display_meta=meta
                )

    def _candidates(self, typed: list[str], text: str) -> Iterable[tuple[str, str, str]]:
        words = [each.upper() for each in typed]
        if words[-1:] == ["."] and len(words) > 1:
            return self._columns_of(words, text)
        if not words:
            return [(each, each, "") for each in (*STATEMENT_WORDS, *COMMANDS)]
        if words[-1] in BEFORE_SOURCES or tuple(words[-2:]) in BEFORE_DROPPED:
            return self._sources()
        return [*self._columns(text), *self._calls(), *((each, each, "") for each in KEYWORDS)]

    def _sources(self) -> list[tuple[str, str, str]]:
        return [(each.name, each.name, each.kind) for each in self._catalog.sources.values()]

    def _columns(self, text: str) -> list[tuple[str, str, str]]:
        """The columns of all sources of a statement, including those after the cursor."""
        found = dict.fromkeys(match.group().upper() for match in TOKEN.finditer(text))
        sources = [each for name, each in self._catalog.sources.items() if name in found]
        return [
            (name, name, f"{type_} of {each.name}")
            for each in sources
            for name, type_ in each.columns
        ]

    def _columns_of(self, words: list[str], text: str) -> list[tuple[str, str, str]]:
        """The columns of the source or alias before a dot."""
        name = words[-2]
        sources = self._catalog.sources
        source = sources.get(name) or sources.get(_aliased(name, text))
        if source is None:
            return []
        return [(column, column, type_) for column, type_ in source.columns]

    def _calls(self) -> list[tuple[str, str, str]]:
        return [(f"{name}(", name, signature) for name, signature in self._functions]


def _aliased(alias: str, text: str) -> str:
    """The source of an alias: FROM orders o, FROM orders AS o."""
    found = TOKEN.finditer(text)
    words = [match.group().upper() for match in found if match.lastgroup != "space"]
    for place, word in enumerate(words[:-2]):
        if word not in ("FROM", "JOIN"):
            continue
        after = place + 3 if words[place + 2] == "AS" else place + 2
        if words[after : after + 1] == [alias]:
            return words[place + 1]
    return ""
