"""Rendering: entities as tables and lines, by rules for their tags.

Lists are tables by the rules of lists.py; each other entity has a function. An entity without a
rule, perhaps of a newer server, is shown as JSON.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sql.functions.json_documents import document_text
from sql.shell.lists import LISTS, Cell, Json, ListRule, progress_lines, query_status
from sql.shell.screen import clean
from sql.shell.session import EntityJson

EMPTY: Sequence[object] = (None, "", [], {})


def failed(entity: EntityJson) -> bool:
    """Whether an entity reports a command that failed."""
    return (entity.get("commandStatus") or {}).get("status") == "ERROR"


def rendered(entity: EntityJson, *, plain: bool) -> RenderableType:
    """How an entity is shown; `plain` uses ASCII lines."""
    shape = TableStyle(box.ASCII if plain else box.ROUNDED)
    tag = entity.get("@type", "")
    rule = LISTS.get(tag)
    parts: list[RenderableType]
    if rule is not None:
        parts = [shape.listing(rule, entity.get(rule.member) or ())]
    elif tag in RULES:
        parts = list(RULES[tag](entity, shape))
    else:
        parts = [_text(document_text(entity, plain=True))]
    warnings = (each.get("message") if isinstance(each, dict) else each for each in _warned(entity))
    return Group(*parts, *(_text(f"warning: {each}", "yellow") for each in warnings))


def _warned(entity: EntityJson) -> Sequence[Json]:
    return entity.get("warnings") or ()


@dataclass(frozen=True, slots=True)
class TableStyle:
    """Tables with one style of lines."""

    box: box.Box

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
        """Rows with headings; numbers are right-aligned."""
        made = Table(box=self.box, header_style="bold", show_edge=True)
        for index, heading in enumerate(headings):
            numbers = rows and all(type(row[index]) is int for row in rows)
            made.add_column(heading, justify="right" if numbers else "left", overflow="fold")
        for row in rows:
            made.add_row(*(_text(_cell(each)) for each in row))
        return made

    def listing(self, rule: ListRule, found: Sequence[Json]) -> RenderableType:
        """A list by its rule."""
        if not found:
            return _text(rule.empty, "dim")
        headings = [heading for heading, _ in rule.columns]
        rows = [[_member(each, cell) for _, cell in rule.columns] for each in found]
        return self.table(headings, rows)

    def facts(self, facts: Sequence[tuple[str, object]]) -> RenderableType:
        """Names and values side by side; empty values are left out."""
        shown = [(name, _cell(value)) for name, value in facts if value not in EMPTY]
        width = max((len(name) for name, _ in shown), default=0) + 2
        made = Text()
        for name, value in shown:
            lines = clean(value, keep="\n").split("\n")
            made.append(f"{name}:".ljust(width), "bold")
            made.append(("\n" + " " * width).join(lines) + "\n")
        made.rstrip()
        return made

    def fields(self, fields: Sequence[Json]) -> RenderableType:
        """The columns of a stream, table or query."""
        rows = [(each.get("name", ""), _field_type(each)) for each in fields]
        return self.table(("Field", "Type"), rows)


def _member(found: Json, cell: Cell) -> object:
    return found.get(cell) if isinstance(cell, str) else cell(found)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(_cell, value))
        case dict():
            return document_text(value, plain=True)
        case _:
            return str(value)


def _text(text: str, style: str = "") -> Text:
    return Text(clean(text, keep="\n"), style)


def type_text(schema: Json) -> str:
    """The SQL type of a schema.

    >>> type_text({"type": "ARRAY", "memberSchema": {"type": "STRING"}})
    'ARRAY<STRING>'
    """
    schema = schema or {}
    kind = str(schema.get("type", ""))
    if kind == "ARRAY":
        return f"ARRAY<{type_text(schema.get('memberSchema'))}>"
    if kind == "MAP":
        return f"MAP<STRING, {type_text(schema.get('memberSchema'))}>"
    if kind == "STRUCT":
        fields = schema.get("fields") or ()
        inner = (f"{each.get('name')} {type_text(each.get('schema'))}" for each in fields)
        return f"STRUCT<{', '.join(inner)}>"
    given = schema.get("parameters")
    if kind == "DECIMAL" and given:
        return f"DECIMAL({given.get('precision')}, {given.get('scale')})"
    return kind


def _field_type(field: Json) -> str:
    text = type_text(field.get("schema"))
    match field.get("type"):
        case "KEY":
            return f"{text} (key)"
        case "HEADER":
            key = field.get("headerKey")
            return f"{text} (header('{key}'))" if key else f"{text} (headers)"
        case _:
            return text


# --- entities with a rule of their own ---------------------------------------------------------


def _status(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    status = entity.get("commandStatus") or {}
    message = str(status.get("message") or status.get("status") or "")
    yield _text(message, "red" if failed(entity) else "green")


def _warning(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    yield _text(f"warning: {entity.get('message', '')}", "yellow")


def _source(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    source = entity.get("sourceDescription") or {}
    yield from _source_parts(source, shape)
    if not source.get("extended"):
        name = source.get("name", "")
        yield _text(f"For its topic and queries: DESCRIBE {name} EXTENDED;", "dim")


def _sources_described(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    found = entity.get("sourceDescriptions") or ()
    if not found:
        yield _text("there is nothing to describe", "dim")
    for each in found:
        yield from _source_parts(each, shape)


def _source_parts(source: Json, shape: TableStyle) -> Iterator[RenderableType]:
    facts: list[tuple[str, object]] = [("Name", source.get("name"))]
    if source.get("extended"):
        facts += [
            ("Type", source.get("type")),
            ("Windows", source.get("windowType")),
            ("Timestamp", source.get("timestamp")),
            ("Key format", source.get("keyFormat")),
            ("Value format", source.get("valueFormat")),
            ("Kafka topic", source.get("topic")),
            ("Partitions", source.get("partitions")),
            ("Replicas", source.get("replication")),
            ("Statement", source.get("statement")),
        ]
    yield shape.facts(facts)
    yield shape.fields(source.get("fields") or ())
    for title, member in (("Read by", "readQueries"), ("Written by", "writeQueries")):
        queries = source.get(member) or ()
        if source.get("extended") and queries:
            yield _text(title, "bold")
            rows = [
                (each.get("id"), query_status(each), each.get("queryString")) for each in queries
            ]
            yield shape.table(("Query ID", "Status", "Query"), rows)
    for group in source.get("queryOffsetSummaries") or ():
        yield from _offsets(group, shape)
    statistics = [source.get("statistics"), source.get("errorStats")]
    if any(statistics):
        yield _text("Local runtime statistics", "bold")
        yield _text("\n".join(str(each) for each in statistics if each))
        yield _text(f"(of this server, for topic {source.get('topic')})")


def _offsets(group: Json, shape: TableStyle) -> Iterator[RenderableType]:
    yield _text(f"Consumer group {group.get('groupId')}", "bold")
    rows = [
        (
            topic.get("kafkaTopic"),
            each.get("partition"),
            each.get("logStartOffset"),
            each.get("logEndOffset"),
            each.get("consumerOffset"),
            each.get("logEndOffset", 0) - each.get("consumerOffset", 0),
        )
        for topic in group.get("topicSummaries") or ()
        for each in topic.get("offsets") or ()
    ]
    yield shape.table(("Kafka topic", "Partition", "Start", "End", "Offset", "Lag"), rows)


def _query(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    yield from _query_parts(entity.get("queryDescription") or {}, shape)


def _queries_described(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    found = entity.get("queryDescriptions") or ()
    if not found:
        yield _text(LISTS["queries"].empty, "dim")
    for each in found:
        yield from _query_parts(each, shape)


def _query_parts(query: Json, shape: TableStyle) -> Iterator[RenderableType]:
    yield shape.facts(
        [
            ("ID", query.get("id")),
            ("Type", query.get("queryType")),
            ("SQL", query.get("statementText")),
            ("Windows", query.get("windowType")),
            ("Status", query.get("state")),
            ("On Spark", ", ".join(progress_lines(query))),
            ("Reads", query.get("sources")),
            ("Writes", query.get("sinks")),
        ]
    )
    if query.get("fields"):
        yield shape.fields(query["fields"])
    for title, member in (("Execution plan", "executionPlan"), ("Topology", "topology")):
        if query.get(member):
            yield _text(title, "bold")
            yield _text(str(query[member]).rstrip())
    overridden = query.get("overriddenProperties") or {}
    if overridden:
        yield _text("Settings", "bold")
        yield shape.table(("Property", "Value"), list(overridden.items()))
    for each in query.get("queryErrors") or ():
        yield _text(f"{each.get('type')} error: {each.get('errorMessage')}", "red")


def _function(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    name = entity.get("name", "")
    yield shape.facts(
        [
            ("Name", name),
            ("Type", entity.get("type")),
            ("Author", entity.get("author")),
            ("Version", entity.get("version")),
            ("About", entity.get("description")),
        ]
    )
    for each in entity.get("functions") or ():
        yield _text(f"  {signature_text(str(name), each)}")


def signature_text(name: str, variation: Json) -> str:
    """The signature of one overload."""
    arguments = ", ".join(map(_argument, variation.get("arguments") or ()))
    return f"{name}({arguments}) -> {variation.get('returnType', '')}"


def _argument(argument: Json) -> str:
    more = "..." if argument.get("isVariadic") else ""
    return f"{argument.get('name', '')} {argument.get('type', '')}{more}".strip()


def _types(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    types = entity.get("types") or {}
    if not types:
        yield _text("there are no types", "dim")
        return
    yield shape.table(("Type", "Stands for"), [(name, type_text(types[name])) for name in types])


def _terminated(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    ended = "was terminated" if entity.get("wasTerminated") else "could not be terminated"
    yield _text(f"Query {entity.get('queryId')} {ended}")


def _asserted_topic(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    there = "exists" if entity.get("exists") else "does not exist"
    yield _text(f"Topic {entity.get('topicName')} {there}", "green")


def _asserted_schema(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    subject, schema_id = entity.get("subject"), entity.get("id")
    named = ([f"of {subject}"] if subject else []) + ([f"with id {schema_id}"] if schema_id else [])
    there = "exists" if entity.get("exists") else "does not exist"
    yield _text(f"A schema {' '.join(named)} {there}", "green")


def _created_connector(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    yield _text(f"Created connector {(entity.get('info') or {}).get('name')}", "green")


def _dropped_connector(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    yield _text(f"Dropped connector {entity.get('connectorName')}", "green")


def _connector(entity: EntityJson, shape: TableStyle) -> Iterator[RenderableType]:
    status = entity.get("status") or {}
    state = status.get("connector") or {}
    yield shape.facts(
        [
            ("Name", status.get("name")),
            ("Class", entity.get("connectorClass")),
            ("Type", status.get("type")),
            ("State", state.get("state")),
            ("Worker", state.get("worker_id")),
            ("Trace", state.get("trace")),
            ("Topics", entity.get("topics")),
        ]
    )
    tasks = [
        (each.get("id"), each.get("state"), each.get("trace")) for each in status.get("tasks") or ()
    ]
    if tasks:
        yield shape.table(("Task", "State", "Trace"), tasks)
    for each in entity.get("sources") or ():
        yield from _source_parts(each, shape)


RULES: Mapping[str, Callable[[EntityJson, TableStyle], Iterator[RenderableType]]] = {
    "currentStatus": _status,
    "warning_entity": _warning,
    "sourceDescription": _source,
    "source_descriptions": _sources_described,
    "queryDescription": _query,
    "query_descriptions": _queries_described,
    "describe_function": _function,
    "type_list": _types,
    "terminate_query": _terminated,
    "assert_topic": _asserted_topic,
    "assert_schema": _asserted_schema,
    "connector_info": _created_connector,
    "drop_connector": _dropped_connector,
    "connector_description": _connector,
}
