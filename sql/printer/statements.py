"""Prints queries and statements, on one line or on several."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sql.printer.expressions import (
    name_text,
    print_expression,
    print_expressions,
    print_primary,
    print_type,
    print_value,
    quoted,
)
from sql.syntax import queries as qu
from sql.syntax import statements as st
from sql.syntax.expressions import Expression
from sql.syntax.keywords import STATEMENT_WORDS

WIDTH = 100  # of a line; if items of SELECT exceed it, each has its own line


def print_statement(statement: st.Statement, *, pretty: bool = False) -> str:
    """A statement without a semicolon; `pretty`: queries on several lines.

    >>> print_statement(st.DropSource(st.SourceKind.STREAM, "S", if_exists=True))
    'DROP STREAM IF EXISTS S'
    """
    if isinstance(statement, st.Select | st.InsertSelect | st.CreateAsSelect):
        head = _HEADS[type(statement)](statement)
        query = print_query(statement.query, pretty=pretty)
        return query if not head else f"{head}{chr(10) if pretty else ' '}{query}"
    if isinstance(statement, st.Explain) and statement.statement is not None:
        return f"EXPLAIN {print_statement(statement.statement, pretty=pretty)}"
    text = " ".join(_words(_PARTS[type(statement)](statement)))
    if pretty and len(text) > WIDTH and isinstance(statement, st.CreateSource):
        return _on_lines(statement)
    return text


def print_query(query: qu.Query, *, pretty: bool = False) -> str:
    """A query on one line, or with a line per clause."""
    items = [_item(each) for each in query.items]
    select = f"SELECT {', '.join(items)}"
    if pretty and len(select) > WIDTH:
        select = "SELECT\n  " + ",\n  ".join(items)
    parts = [select, f"FROM {_source(query.source)}", *map(_join, query.joins)]
    if query.window is not None:
        parts.append(f"WINDOW {_window(query.window)}")
    if query.where is not None:
        parts.append(f"WHERE {print_expression(query.where)}")
    if query.group_by:
        parts.append(f"GROUP BY {_grouping(query.group_by)}")
    if query.partition_by:
        parts.append(f"PARTITION BY {_grouping(query.partition_by)}")
    if query.having is not None:
        parts.append(f"HAVING {print_expression(query.having)}")
    if query.emit is not qu.EmitClause.NOTHING:
        parts.append(f"EMIT {query.emit.value}")
    if query.limit is not None:
        parts.append(f"LIMIT {query.limit}")
    return ("\n" if pretty else " ").join(parts)


def _item(item: qu.SelectItem) -> str:
    match item:
        case qu.SelectAll(source):
            return "*" if source is None else f"{name_text(source)}.*"
        case qu.SelectFields(struct):
            return f"{print_primary(struct)}->*"
        case qu.SelectExpression(expression, alias):
            named = "" if alias is None else f" AS {name_text(alias)}"
            return print_expression(expression) + named


def _source(source: qu.Source) -> str:
    name = name_text(source.name)
    return name if source.alias == source.name else f"{name} AS {name_text(source.alias)}"


def _join(join: qu.Join) -> str:
    within = "" if join.within is None else f" {_within(join.within)}"
    on = print_expression(join.on)
    return f"{join.kind.value} JOIN {_source(join.right)}{within} ON {on}"


def _within(within: qu.Within) -> str:
    both = f"({_duration(within.before)}, {_duration(within.after)})"
    size = _duration(within.before) if within.before == within.after else both
    grace = "" if within.grace is None else f" GRACE PERIOD {_duration(within.grace)}"
    return f"WITHIN {size}{grace}"


def _window(window: qu.Window) -> str:
    size = _duration(window.size)
    parts = [size if window.kind is qu.WindowKind.SESSION else f"SIZE {size}"]
    if window.advance is not None:
        parts.append(f"ADVANCE BY {_duration(window.advance)}")
    if window.retention is not None:
        parts.append(f"RETENTION {_duration(window.retention)}")
    if window.grace is not None:
        parts.append(f"GRACE PERIOD {_duration(window.grace)}")
    return f"{window.kind.value} ({', '.join(parts)})"


def _duration(duration: qu.Duration) -> str:
    return f"{duration.count} {duration.unit}"


def _grouping(expressions: Sequence[Expression]) -> str:
    return ", ".join(map(print_value, expressions))


# Parts of statements; those that are False, None or empty are omitted.
Part = str | bool | None


def _words(parts: Iterable[Part]) -> list[str]:
    return [each for each in parts if each and isinstance(each, str)]


def _when(said: bool, words: str) -> str:
    return words if said else ""


def _number(word: str, value: int | None) -> str:
    return "" if value is None else f"{word} {value}"


def _names(names: Sequence[str]) -> str:
    return f"({', '.join(map(name_text, names))})" if names else ""


def _columns(columns: Sequence[st.ColumnDefinition]) -> str:
    return f"({', '.join(map(_column, columns))})" if columns else ""


def _column(column: st.ColumnDefinition) -> str:
    role = column.role.value
    if column.role is st.ColumnRole.HEADER:
        role = f"HEADER({quoted(column.header or '')})"
    return " ".join(_words([name_text(column.name), print_type(column.type), role]))


def _with(properties: st.Properties) -> str:
    if not properties:
        return ""
    shown = (f"{_property_name(name)}={print_expression(value)}" for name, value in properties)
    return f"WITH ({', '.join(shown)})"


def _property_name(name: str) -> str:
    shown = name_text(name)
    return shown if shown == name else quoted(name)


def _timeout(timeout: qu.Duration | None) -> str:
    return "" if timeout is None else f"TIMEOUT {_duration(timeout)}"


def _create(node: st.CreateSource | st.CreateAsSelect) -> list[Part]:
    return [
        "CREATE",
        _when(node.or_replace, "OR REPLACE"),
        _when(isinstance(node, st.CreateSource) and node.is_source, "SOURCE"),
        node.kind.value,
        _when(node.if_not_exists, "IF NOT EXISTS"),
        name_text(node.name),
        _columns(node.columns) if isinstance(node, st.CreateSource) else "",
        _with(node.properties),
    ]


def _on_lines(node: st.CreateSource) -> str:
    """With a line per column and one for the properties."""
    head = " ".join(_words(_create(replace(node, columns=(), properties=()))))
    columns = ",\n".join(f"  {_column(each)}" for each in node.columns)
    listed = f" (\n{columns}\n)" if columns else ""
    properties = _with(node.properties)
    return head + listed + (f"\n{properties}" if properties else "")


def _create_connector(node: st.CreateConnector) -> list[Part]:
    exists = _when(node.if_not_exists, "IF NOT EXISTS")
    properties = (f"{quoted(name)}={print_expression(each)}" for name, each in node.properties)
    name = name_text(node.name)
    return ["CREATE", node.kind.value, "CONNECTOR", exists, name, f"WITH ({', '.join(properties)})"]


def _alter_source(node: st.AlterSource) -> list[Part]:
    added = ", ".join(f"ADD COLUMN {_column(each)}" for each in node.added)
    return ["ALTER", node.kind.value, name_text(node.name), added]


def _drop_source(node: st.DropSource) -> list[Part]:
    exists, delete = _when(node.if_exists, "IF EXISTS"), _when(node.delete_topic, "DELETE TOPIC")
    return ["DROP", node.kind.value, exists, name_text(node.name), delete]


def _describe_source(node: st.DescribeSource) -> list[Part]:
    # DESCRIBE TABLES would describe all of them.
    name = f"`{node.name}`" if node.name == "TABLES" else name_text(node.name)
    return ["DESCRIBE", name, _when(node.extended, "EXTENDED")]


def _explain_query(node: st.Explain) -> list[Part]:
    name = node.query_id or ""
    # An id that is a keyword of a statement would begin one here.
    return ["EXPLAIN", f"`{name}`" if name in STATEMENT_WORDS else name_text(name)]


def _print(node: st.Print) -> list[Part]:
    beginning = _when(node.from_beginning, "FROM BEGINNING")
    interval, limit = _number("INTERVAL", node.interval), _number("LIMIT", node.limit)
    return ["PRINT", quoted(node.topic), beginning, interval, limit]


def _control(node: st.ControlQuery) -> list[Part]:
    return [node.action.value, "ALL" if node.query_id is None else name_text(node.query_id)]


def _not_exists(exists: bool) -> str:
    return _when(not exists, "NOT EXISTS")


def _assert_topic(node: st.AssertTopic) -> list[Part]:
    properties, timeout = _with(node.properties), _timeout(node.timeout)
    return ["ASSERT", _not_exists(node.exists), "TOPIC", quoted(node.topic), properties, timeout]


def _assert_schema(node: st.AssertSchema) -> list[Part]:
    subject = "" if node.subject is None else f"SUBJECT {quoted(node.subject)}"
    schema_id, timeout = _number("ID", node.schema_id), _timeout(node.timeout)
    return ["ASSERT", _not_exists(node.exists), "SCHEMA", subject, schema_id, timeout]


def _assert_source(node: st.AssertSource) -> list[Part]:
    created = node.created
    columns, properties = _columns(created.columns), _with(created.properties)
    return ["ASSERT", created.kind.value, name_text(created.name), columns, properties]


def _listed(expressions: Sequence[Expression]) -> str:
    return f"({print_expressions(expressions)})"


# mypy cannot know that the key of a function is the type of its nodes.
_HEADS: dict[type, Callable[..., str]] = {
    st.Select: lambda node: "",
    st.InsertSelect: lambda node: " ".join(
        _words(["INSERT INTO", name_text(node.target), _with(node.properties)])
    ),
    st.CreateAsSelect: lambda node: " ".join(_words([*_create(node), "AS"])),
}
_PARTS: dict[type, Callable[..., list[Part]]] = {
    st.CreateSource: _create,
    st.InsertValues: lambda node: [
        *("INSERT INTO", name_text(node.target), _names(node.columns)),
        *("VALUES", _listed(node.values)),
    ],
    st.AlterSource: _alter_source,
    st.AlterSystem: lambda node: [f"ALTER SYSTEM {quoted(node.name)} = {quoted(node.value)}"],
    st.DropSource: _drop_source,
    st.CreateType: lambda node: [
        *("CREATE TYPE", _when(node.if_not_exists, "IF NOT EXISTS"), name_text(node.name)),
        *("AS", print_type(node.type)),
    ],
    st.DropType: lambda node: [
        *("DROP TYPE", _when(node.if_exists, "IF EXISTS"), name_text(node.name)),
    ],
    st.CreateConnector: _create_connector,
    st.DropConnector: lambda node: [
        *("DROP CONNECTOR", _when(node.if_exists, "IF EXISTS"), name_text(node.name)),
    ],
    st.Show: lambda node: ["SHOW", node.what.value, _when(node.extended, "EXTENDED")],
    st.DescribeSource: _describe_source,
    st.DescribeSources: lambda node: [
        *("DESCRIBE", f"{node.kind.value}S", _when(node.extended, "EXTENDED")),
    ],
    st.DescribeFunction: lambda node: ["DESCRIBE FUNCTION", name_text(node.name)],
    st.DescribeConnector: lambda node: ["DESCRIBE CONNECTOR", name_text(node.name)],
    st.Explain: _explain_query,
    st.Print: _print,
    st.ControlQuery: _control,
    st.SetProperty: lambda node: [f"SET {quoted(node.name)} = {quoted(node.value)}"],
    st.UnsetProperty: lambda node: [f"UNSET {quoted(node.name)}"],
    st.DefineVariable: lambda node: [f"DEFINE {name_text(node.name)} = {quoted(node.value)}"],
    st.UndefineVariable: lambda node: ["UNDEFINE", name_text(node.name)],
    st.AssertTopic: _assert_topic,
    st.AssertSchema: _assert_schema,
    st.RunScript: lambda node: ["RUN SCRIPT", quoted(node.path)],
    st.AssertValues: lambda node: [
        *("ASSERT VALUES", name_text(node.source), _names(node.columns)),
        *("VALUES", _listed(node.values)),
    ],
    st.AssertTombstone: lambda node: [
        *("ASSERT NULL VALUES", name_text(node.source), _names(node.columns)),
        *("KEY", _listed(node.key)),
    ],
    st.AssertSource: _assert_source,
}
