"""SHOW: lists of streams, tables, topics and so on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sql.catalog import Catalog, SourceInfo
from sql.engine import entities as en
from sql.engine.fields import field_schema
from sql.engine.settings import EDITABLE, STREAMS_PREFIX, SqlConfig, is_of_ksql
from sql.engine.topic_rules import matches_any
from sql.engine.topics import Topics
from sql.functions.registry import (
    AggregateOverload,
    Function,
    FunctionRegistry,
    Overload,
    TableOverload,
)
from sql.syntax.statements import SourceKind

HIDDEN_TOPICS = "ksql.hidden.topics"


def sources(catalog: Catalog, kind: SourceKind) -> list[SourceInfo]:
    """The streams, or the tables, by name."""
    found = [each for each in catalog.sources.values() if each.kind is kind]
    return sorted(found, key=lambda each: each.name)


def source_summary(source: SourceInfo) -> en.SourceSummary:
    """A stream or table in a list."""
    return en.SourceSummary(
        source.kind.value,
        source.name,
        source.topic,
        source.key_format.name,
        source.value_format.name,
        source.window is not None,
    )


def sources_list(catalog: Catalog, kind: SourceKind, text: str) -> en.Entity:
    """SHOW STREAMS, SHOW TABLES."""
    found = tuple(source_summary(each) for each in sources(catalog, kind))
    if kind is SourceKind.STREAM:
        return en.StreamsList(text, found)
    return en.TablesList(text, found)


@dataclass(frozen=True, slots=True)
class TopicsShown:
    """SHOW TOPICS, with or without hidden topics."""

    topics: Topics
    config: SqlConfig

    def listed(self, text: str, *, everything: bool, extended: bool) -> en.Entity:
        """The list."""
        hidden = self.config.text(HIDDEN_TOPICS)
        internal = f"_confluent-ksql-{self.config.text('ksql.service.id')}"
        found = {
            name: replicas
            for name, replicas in self.topics.shapes().items()
            if everything or not (matches_any(name, hidden) or name.startswith(internal))
        }
        if not extended:
            return en.TopicsList(
                text, tuple(en.TopicSummary(name, replicas) for name, replicas in found.items())
            )
        readers = self.topics.readers()
        return en.ExtendedTopicsList(
            text,
            tuple(
                en.ExtendedTopicSummary(
                    name,
                    replicas,
                    sum(readers.get(name, {}).values()),
                    len(readers.get(name, {})),
                )
                for name, replicas in found.items()
            ),
        )


def properties_list(
    config: SqlConfig, overrides: Mapping[str, object], text: str
) -> en.PropertiesList:
    """SHOW PROPERTIES."""
    under = config.with_session(overrides)
    found = []
    for name in under:
        value = under[name]
        ours = is_of_ksql(name)
        found.append(
            en.Property(
                name if ours else f"{STREAMS_PREFIX}{name}",
                "KSQL" if ours else "EXTERNAL",
                None if value is None else _shown(value),
                name in EDITABLE or not ours,
                "QUERY" if name in EDITABLE or not ours else "SERVER",
            )
        )
    given = {*config.given, *overrides}
    defaults = [each.name for each in found if each.name.removeprefix(STREAMS_PREFIX) not in given]
    return en.PropertiesList(text, tuple(found), tuple(overrides), tuple(defaults))


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def variables_list(variables: Mapping[str, str], text: str) -> en.VariablesList:
    """SHOW VARIABLES."""
    found = (en.Variable(name, value) for name, value in sorted(variables.items()))
    return en.VariablesList(text, tuple(found))


def types_list(catalog: Catalog, text: str) -> en.TypesList:
    """SHOW TYPES."""
    return en.TypesList(
        text, {name: field_schema(each) for name, each in sorted(catalog.types.items())}
    )


def functions_list(functions: FunctionRegistry, text: str) -> en.FunctionsList:
    """SHOW FUNCTIONS."""
    return en.FunctionsList(
        text,
        tuple(
            en.FunctionSummary(each.name, _function_type(each.overloads), each.category)
            for each in functions
        ),
    )


def function_description(
    functions: FunctionRegistry, name: str, text: str
) -> en.FunctionDescription:
    """DESCRIBE FUNCTION."""
    function: Function = functions.get(name)
    return en.FunctionDescription(
        text,
        function.name,
        function.description,
        function.author,
        function.version,
        "internal",
        tuple(_variation(each, function.description) for each in function.overloads),
        _function_type(function.overloads),
    )


def _function_type(overloads: Iterable[Overload]) -> str:
    first = next(iter(overloads))
    if isinstance(first, AggregateOverload):
        return "AGGREGATE"
    return "TABLE" if isinstance(first, TableOverload) else "SCALAR"


def _variation(overload: Overload, description: str) -> en.FunctionVariation:
    signature = overload.signature
    return en.FunctionVariation(
        tuple(
            en.ArgumentInfo(each.name, str(each.pattern), "", each.variadic)
            for each in signature.parameters
        ),
        str(signature.result),
        description,
    )
