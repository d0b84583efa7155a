"""SyntaxBuilder: queries and statements on top of expressions."""

from typing import Any

from lark import v_args
from lark.tree import Meta

from sql.parse.builder import ExpressionBuilder, Parts, at, failed, present, unquoted
from sql.syntax import queries as qu
from sql.syntax import statements as st


def word_or_text(part: object) -> str:
    """A name, or what stands in quotes instead of one."""
    text = str(part)
    return unquoted(text) if text[:1] == "'" else text


@v_args(meta=True)
class SyntaxBuilder(ExpressionBuilder):
    """The whole grammar."""

    # script: each statement with the bounds of its text
    def script(self, meta: Meta, parts: Parts) -> list[Any]:
        return parts

    def bounded(self, meta: Meta, parts: Parts) -> tuple[st.Statement, int, int]:
        return parts[0], meta.start_pos, meta.end_pos

    # queries

    def query(self, meta: Meta, parts: Parts) -> qu.Query:
        *first, window, where, group_by, partition_by, having, emit, limit = parts
        items = tuple(each for each in first if isinstance(each, qu.SelectItem))
        source = next(each for each in first if isinstance(each, qu.Source))
        joins = tuple(each for each in first if isinstance(each, qu.Join))
        return qu.Query(
            items,
            source,
            joins,
            window,
            where,
            group_by or (),
            partition_by or (),
            having,
            emit or qu.Emit.NOTHING,
            limit,
            position=at(meta),
        )

    def select_expression(self, meta: Meta, parts: Parts) -> qu.SelectExpression:
        return qu.SelectExpression(*parts, position=at(meta))

    def select_everything(self, meta: Meta, parts: Parts) -> qu.SelectAll:
        return qu.SelectAll(position=at(meta))

    def select_all(self, meta: Meta, parts: Parts) -> qu.SelectAll:
        return qu.SelectAll(parts[0], position=at(meta))

    def select_fields(self, meta: Meta, parts: Parts) -> qu.SelectFields:
        return qu.SelectFields(parts[0], position=at(meta))

    def source(self, meta: Meta, parts: Parts) -> qu.Source:
        name, alias = parts
        return qu.Source(name, alias or name, position=at(meta))

    def first(self, meta: Meta, parts: Parts) -> Any:
        return parts[0]

    alias = where = having = limit = interval = timeout = grace = retention = grace_part = first
    group_by = partition_by = query_id = first

    def emit(self, meta: Meta, parts: Parts) -> qu.Emit:
        return qu.Emit(str(parts[0]).upper())

    def inner(self, meta: Meta, parts: Parts) -> qu.JoinKind:
        return qu.JoinKind.INNER

    def left(self, meta: Meta, parts: Parts) -> qu.JoinKind:
        return qu.JoinKind.LEFT

    def right(self, meta: Meta, parts: Parts) -> qu.JoinKind:
        return qu.JoinKind.RIGHT

    def outer(self, meta: Meta, parts: Parts) -> qu.JoinKind:
        return qu.JoinKind.OUTER

    def join(self, meta: Meta, parts: Parts) -> qu.Join:
        kind, source, within, on = parts
        return qu.Join(kind, source, on, within, position=at(meta))

    def within_same(self, meta: Meta, parts: Parts) -> qu.Within:
        size, grace = parts
        return qu.Within(size, size, grace, position=at(meta))

    def within_both(self, meta: Meta, parts: Parts) -> qu.Within:
        return qu.Within(*parts, position=at(meta))

    def window(self, meta: Meta, parts: Parts) -> qu.Window:
        window: qu.Window = parts[1]
        return window

    def tumbling(self, meta: Meta, parts: Parts) -> qu.Window:
        size, retention, grace = parts
        return qu.Window(qu.WindowKind.TUMBLING, size, None, retention, grace, position=at(meta))

    def hopping(self, meta: Meta, parts: Parts) -> qu.Window:
        return qu.Window(qu.WindowKind.HOPPING, *parts, position=at(meta))

    def session(self, meta: Meta, parts: Parts) -> qu.Window:
        gap, retention, grace = parts
        return qu.Window(qu.WindowKind.SESSION, gap, None, retention, grace, position=at(meta))

    # parts of statements

    def yes(self, meta: Meta, parts: Parts) -> bool:
        return True

    if_not_exists = if_exists = not_exists = delete_topic = extended = from_beginning = yes

    def source_kind(self, meta: Meta, parts: Parts) -> st.SourceKind:
        return st.SourceKind(str(parts[0]).upper())

    def source_kinds(self, meta: Meta, parts: Parts) -> st.SourceKind:
        return st.SourceKind(str(parts[0]).upper().removesuffix("S"))

    def connector_kind(self, meta: Meta, parts: Parts) -> st.ConnectorKind:
        return st.ConnectorKind(str(parts[0]).upper())

    def action(self, meta: Meta, parts: Parts) -> st.QueryAction:
        return st.QueryAction(str(parts[0]).upper())

    def listing(self, meta: Meta, parts: Parts) -> st.Listing:
        return st.Listing(" ".join(str(each).upper() for each in parts))

    extendable = listing

    def topic(self, meta: Meta, parts: Parts) -> str:
        return word_or_text(parts[0])

    source_name = topic

    def subject(self, meta: Meta, parts: Parts) -> str:
        return word_or_text(parts[0])

    def schema_id(self, meta: Meta, parts: Parts) -> int:
        found: int = parts[0]
        return found

    def key(self, meta: Meta, parts: Parts) -> tuple[st.ColumnRole, str | None]:
        return st.ColumnRole.KEY, None

    def primary_key(self, meta: Meta, parts: Parts) -> tuple[st.ColumnRole, str | None]:
        return st.ColumnRole.PRIMARY_KEY, None

    def headers(self, meta: Meta, parts: Parts) -> tuple[st.ColumnRole, str | None]:
        return st.ColumnRole.HEADERS, None

    def header(self, meta: Meta, parts: Parts) -> tuple[st.ColumnRole, str | None]:
        return st.ColumnRole.HEADER, unquoted(parts[0])

    def element(self, meta: Meta, parts: Parts) -> st.ColumnDefinition:
        name, type_, role = parts
        kind, header = role or (st.ColumnRole.VALUE, None)
        return st.ColumnDefinition(name, type_, kind, header, position=at(meta))

    def added(self, meta: Meta, parts: Parts) -> st.ColumnDefinition:
        return st.ColumnDefinition(*parts, position=at(meta))

    def listed(self, meta: Meta, parts: Parts) -> tuple[Any, ...]:
        return tuple(present(parts))

    elements = columns = with_ = listed

    def property(self, meta: Meta, parts: Parts) -> tuple[str, Any]:
        name, value = parts
        return word_or_text(name), value

    # statements

    def create(self, meta: Meta, parts: Parts) -> st.CreateSource | st.CreateAsSelect:
        replace, source, kind, exists, name, columns, properties, query = parts
        flags = {"or_replace": replace is not None, "if_not_exists": exists is not None}
        if query is None:
            return st.CreateSource(
                kind,
                name,
                columns or (),
                upper_names(properties),
                is_source=source is not None,
                position=at(meta),
                **flags,
            )
        if source is not None or columns is not None:
            what = "the columns come from its SELECT" if columns else "it is made by its SELECT"
            raise failed(
                f"Syntax Error\nSyntax error at or near 'AS' at line {meta.line}:{meta.column}",
                at(meta),
                hint=f"{kind.value} {name} is made AS SELECT: {what}",
            )
        return st.CreateAsSelect(
            kind, name, query, upper_names(properties), position=at(meta), **flags
        )

    def create_type(self, meta: Meta, parts: Parts) -> st.CreateType:
        exists, name, type_ = parts
        return st.CreateType(name, type_, exists is not None, position=at(meta))

    def create_connector(self, meta: Meta, parts: Parts) -> st.CreateConnector:
        kind, exists, name, properties = parts
        return st.CreateConnector(kind, name, properties, exists is not None, position=at(meta))

    def insert_select(self, meta: Meta, parts: Parts) -> st.InsertSelect:
        name, properties, query = parts
        return st.InsertSelect(name, query, upper_names(properties), position=at(meta))

    def insert_values(self, meta: Meta, parts: Parts) -> st.InsertValues:
        name, columns, values = parts
        return st.InsertValues(name, columns or (), values or (), position=at(meta))

    def select(self, meta: Meta, parts: Parts) -> st.Select:
        return st.Select(parts[0], position=at(meta))

    def alter_source(self, meta: Meta, parts: Parts) -> st.AlterSource:
        kind, name, *added = parts
        return st.AlterSource(kind, name, tuple(added), position=at(meta))

    def alter_system(self, meta: Meta, parts: Parts) -> st.AlterSystem:
        return st.AlterSystem(*map(unquoted, parts), position=at(meta))

    def drop_source(self, meta: Meta, parts: Parts) -> st.DropSource:
        kind, exists, name, topic = parts
        return st.DropSource(kind, name, exists is not None, topic is not None, position=at(meta))

    def drop_type(self, meta: Meta, parts: Parts) -> st.DropType:
        exists, name = parts
        return st.DropType(name, exists is not None, position=at(meta))

    def drop_connector(self, meta: Meta, parts: Parts) -> st.DropConnector:
        exists, name = parts
        return st.DropConnector(name, exists is not None, position=at(meta))

    def show(self, meta: Meta, parts: Parts) -> st.Show:
        what, *extended = parts
        return st.Show(what, bool(present(extended)), position=at(meta))

    def describe_source(self, meta: Meta, parts: Parts) -> st.DescribeSource:
        name, extended = parts
        return st.DescribeSource(name, extended is not None, position=at(meta))

    def describe_sources(self, meta: Meta, parts: Parts) -> st.DescribeSources:
        kind, extended = parts
        return st.DescribeSources(kind, extended is not None, position=at(meta))

    def describe_function(self, meta: Meta, parts: Parts) -> st.DescribeFunction:
        return st.DescribeFunction(parts[0], position=at(meta))

    def describe_connector(self, meta: Meta, parts: Parts) -> st.DescribeConnector:
        return st.DescribeConnector(parts[0], position=at(meta))

    def explain_statement(self, meta: Meta, parts: Parts) -> st.Explain:
        return st.Explain(statement=parts[0], position=at(meta))

    def explain_query(self, meta: Meta, parts: Parts) -> st.Explain:
        return st.Explain(query_id=parts[0], position=at(meta))

    def print_topic(self, meta: Meta, parts: Parts) -> st.Print:
        topic, beginning, interval, limit = parts
        return st.Print(topic, beginning is not None, interval, limit, position=at(meta))

    def control_query(self, meta: Meta, parts: Parts) -> st.ControlQuery:
        return st.ControlQuery(*parts, position=at(meta))

    def control_all(self, meta: Meta, parts: Parts) -> st.ControlQuery:
        return st.ControlQuery(parts[0], None, position=at(meta))

    def set_property(self, meta: Meta, parts: Parts) -> st.SetProperty:
        return st.SetProperty(*map(unquoted, parts), position=at(meta))

    def unset_property(self, meta: Meta, parts: Parts) -> st.UnsetProperty:
        return st.UnsetProperty(unquoted(parts[0]), position=at(meta))

    def define_variable(self, meta: Meta, parts: Parts) -> st.DefineVariable:
        name, value = parts
        return st.DefineVariable(name, unquoted(value), position=at(meta))

    def undefine_variable(self, meta: Meta, parts: Parts) -> st.UndefineVariable:
        return st.UndefineVariable(parts[0], position=at(meta))

    def assert_topic(self, meta: Meta, parts: Parts) -> st.AssertTopic:
        missing, topic, properties, timeout = parts
        return st.AssertTopic(
            topic, missing is None, upper_names(properties), timeout, position=at(meta)
        )

    def assert_schema(self, meta: Meta, parts: Parts) -> st.AssertSchema:
        missing, subject, schema_id, timeout = parts
        return st.AssertSchema(subject, schema_id, missing is None, timeout, position=at(meta))

    def run_script(self, meta: Meta, parts: Parts) -> st.RunScript:
        return st.RunScript(unquoted(parts[0]), position=at(meta))

    def assert_values(self, meta: Meta, parts: Parts) -> st.AssertValues:
        name, columns, values = parts
        return st.AssertValues(name, columns or (), values, position=at(meta))

    def assert_tombstone(self, meta: Meta, parts: Parts) -> st.AssertTombstone:
        name, columns, key = parts
        return st.AssertTombstone(name, columns or (), key, position=at(meta))

    def assert_source(self, meta: Meta, parts: Parts) -> st.AssertSource:
        kind, name, columns, properties = parts
        created = st.CreateSource(
            kind, name, columns or (), upper_names(properties), position=at(meta)
        )
        return st.AssertSource(created, position=at(meta))


def upper_names(properties: st.Properties | None) -> st.Properties:
    """Names of WITH properties are the same in any case."""
    return tuple((name.upper(), value) for name, value in properties or ())
