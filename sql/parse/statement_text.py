"""Parses statements; the docstrings of sql/syntax/statements.py show their syntax."""

from collections.abc import Callable

from sql.parse.expression_text import read_expressions, read_literal
from sql.parse.failures import unfinished, unknown_statement
from sql.parse.query_text import read_duration, read_query
from sql.parse.reader import Reader
from sql.parse.source_text import read_create_source, read_elements, source_kind
from sql.parse.type_text import read_type
from sql.syntax import statements as st
from sql.syntax.expressions import Expression, Literal
from sql.syntax.node import Position
from sql.syntax.queries import Duration

LISTINGS = {each.value: each for each in st.Listing}
EXTENDABLE = ("TOPICS", "ALL TOPICS", "STREAMS", "TABLES", "QUERIES")


def read_statement(reader: Reader) -> st.Statement:
    """Parse a statement without its semicolon."""
    known = STATEMENTS.get(reader.word)
    if known is None:
        raise unknown_statement(reader.tokens, reader.index)
    return known(reader, reader.position())


def read_end(reader: Reader) -> None:
    """Parse the semicolon of a statement."""
    if reader.word != ";":
        raise unfinished(reader.tokens, reader.index)
    reader.advance()


def _select(reader: Reader, place: Position) -> st.Select:
    return st.Select(read_query(reader), position=place)


def _create(reader: Reader, place: Position) -> st.Statement:
    following = (reader.next_word(), reader.next_word(2))
    if following[0] == "TYPE":
        reader.go_to(reader.index + 2)
        exists = reader.accept_all("IF", "NOT", "EXISTS")
        name = reader.name()
        reader.expect("AS")
        return st.CreateType(name, read_type(reader), exists, position=place)
    if following in (("SOURCE", "CONNECTOR"), ("SINK", "CONNECTOR")):
        reader.go_to(reader.index + 3)
        exists = reader.accept_all("IF", "NOT", "EXISTS")
        name = reader.name()
        if reader.word != "WITH":
            reader.fail("WITH")
        kind = st.ConnectorKind(following[0])
        return st.CreateConnector(kind, name, _with(reader), exists, position=place)
    return _create_source(reader, place)


def _create_source(reader: Reader, place: Position) -> st.CreateSource | st.CreateAsSelect:
    created = read_create_source(reader, place, _upper_with)
    if reader.word != "AS":
        return created
    if created.is_source or created.columns:
        reader.fail()
    reader.advance()
    return st.CreateAsSelect(
        created.kind,
        created.name,
        read_query(reader),
        created.properties,
        created.or_replace,
        created.if_not_exists,
        position=place,
    )


def _with(reader: Reader) -> st.Properties:
    """Parse WITH (name = literal, ...), if present; the case of names is kept."""
    if not reader.accept("WITH"):
        return ()
    reader.expect("(")
    if reader.accept(")"):
        return ()
    found = [_property(reader)]
    while reader.accept(","):
        found.append(_property(reader))
    if not reader.accept(")"):
        reader.fail(",", ")")
    return tuple(found)


def _property(reader: Reader) -> tuple[str, Literal]:
    name = reader.name_or_text()
    reader.expect("=")
    return name, read_literal(reader)


def _upper_with(reader: Reader) -> st.Properties:
    """The same with upper-case names."""
    return tuple((name.upper(), value) for name, value in _with(reader))


def _insert(reader: Reader, place: Position) -> st.InsertSelect | st.InsertValues:
    reader.expect("INSERT", "INTO")
    target = reader.name()
    if reader.word in ("WITH", "SELECT"):
        properties = _upper_with(reader)
        return st.InsertSelect(target, read_query(reader), properties, position=place)
    columns = _columns(reader)
    if reader.word != "VALUES":
        reader.fail()
    reader.advance()
    return st.InsertValues(target, columns, _values(reader), position=place)


def _columns(reader: Reader) -> tuple[str, ...]:
    if not reader.accept("("):
        return ()
    names = [reader.name()]
    while reader.accept(","):
        names.append(reader.name())
    if not reader.accept(")"):
        reader.fail(",", ")")
    return tuple(names)


def _values(reader: Reader) -> tuple[Expression, ...]:
    reader.expect("(")
    if reader.accept(")"):
        return ()
    values = read_expressions(reader)
    if not reader.accept(")"):
        reader.fail(",", ")")
    return values


def _alter(reader: Reader, place: Position) -> st.AlterSource | st.AlterSystem:
    reader.expect("ALTER")
    if reader.accept("SYSTEM"):
        name, value = _assignment(reader)
        return st.AlterSystem(name, value, position=place)
    kind, name = source_kind(reader), reader.name()
    added = [_added(reader)]
    while reader.accept(","):
        added.append(_added(reader))
    return st.AlterSource(kind, name, tuple(added), position=place)


def _added(reader: Reader) -> st.ColumnDefinition:
    reader.expect("ADD")
    # A column may be named COLUMN: then only its type follows.
    if reader.word == "COLUMN" and reader.next_kind(2) in ("name", "quoted", "variable"):
        reader.advance()
    place = reader.position()
    return st.ColumnDefinition(reader.name(), read_type(reader), position=place)


def _drop(reader: Reader, place: Position) -> st.Statement:
    reader.expect("DROP")
    if reader.word in ("TYPE", "CONNECTOR"):
        made = st.DropType if reader.word == "TYPE" else st.DropConnector
        reader.advance()
        exists = reader.accept_all("IF", "EXISTS")
        return made(reader.name(), exists, position=place)
    kind = source_kind(reader)
    exists = reader.accept_all("IF", "EXISTS")
    name = reader.name()
    delete = reader.accept("DELETE")
    if delete:
        reader.expect("TOPIC")
    return st.DropSource(kind, name, exists, delete, position=place)


def _show(reader: Reader, place: Position) -> st.Show:
    reader.advance()
    two = f"{reader.word} {reader.next_word()}"
    shown = two if two in LISTINGS else reader.word
    if shown not in LISTINGS:
        reader.fail()
    reader.go_to(reader.index + 1 + (shown == two))
    extended = shown in EXTENDABLE and reader.accept("EXTENDED")
    return st.Show(LISTINGS[shown], extended, position=place)


def _describe(reader: Reader, place: Position) -> st.Statement:
    reader.expect("DESCRIBE")
    named = reader.next_kind() in ("name", "quoted", "variable")
    if reader.word in ("FUNCTION", "CONNECTOR") and named:
        made = st.DescribeFunction if reader.word == "FUNCTION" else st.DescribeConnector
        reader.advance()
        return made(reader.name(), position=place)
    if reader.word in ("STREAMS", "TABLES"):
        kind = st.SourceKind(reader.word.removesuffix("S"))
        reader.advance()
        return st.DescribeSources(kind, reader.accept("EXTENDED"), position=place)
    name = reader.name_or_text()
    return st.DescribeSource(name, reader.accept("EXTENDED"), position=place)


def _explain(reader: Reader, place: Position) -> st.Explain:
    reader.expect("EXPLAIN")
    if reader.word in STATEMENTS and reader.next_kind() != "end" and reader.next_word() != ";":
        reader.enter()
        explained = st.Explain(statement=read_statement(reader), position=place)
        reader.leave(0)
        return explained
    return st.Explain(query_id=reader.name(), position=place)


def _print(reader: Reader, place: Position) -> st.Print:
    reader.expect("PRINT")
    topic = reader.name_as_written()
    beginning = reader.accept_all("FROM", "BEGINNING")
    sampled = reader.accept("INTERVAL") or reader.accept("SAMPLE")
    interval = reader.whole() if sampled else None
    limit = reader.whole(negative=reader.accept("-")) if reader.accept("LIMIT") else None
    return st.Print(topic, beginning, interval, limit, position=place)


def _control(reader: Reader, place: Position) -> st.ControlQuery:
    action = st.QueryAction(reader.word)
    reader.advance()
    query_id = None if reader.accept("ALL") else reader.name()
    return st.ControlQuery(action, query_id, position=place)


def _assignment(reader: Reader) -> tuple[str, str]:
    name = reader.text()
    reader.expect("=")
    return name, reader.text()


def _set(reader: Reader, place: Position) -> st.SetProperty:
    reader.expect("SET")
    name, value = _assignment(reader)
    return st.SetProperty(name, value, position=place)


def _unset(reader: Reader, place: Position) -> st.UnsetProperty:
    reader.expect("UNSET")
    return st.UnsetProperty(reader.text(), position=place)


def _variable_name(reader: Reader) -> str:
    """Parse a word, which may be a keyword here."""
    name = reader.word if reader.kind == "reserved" else ""
    if not name:
        return reader.name()
    reader.advance()
    return name


def _define(reader: Reader, place: Position) -> st.DefineVariable:
    reader.expect("DEFINE")
    name = _variable_name(reader)
    reader.expect("=")
    return st.DefineVariable(name, reader.text(), position=place)


def _undefine(reader: Reader, place: Position) -> st.UndefineVariable:
    reader.expect("UNDEFINE")
    return st.UndefineVariable(_variable_name(reader), position=place)


def _assert(reader: Reader, place: Position) -> st.Statement:
    reader.expect("ASSERT")
    exists = not reader.accept_all("NOT", "EXISTS")
    if reader.accept("TOPIC"):
        topic = reader.name_as_written()
        return st.AssertTopic(topic, exists, _upper_with(reader), _timeout(reader), position=place)
    if reader.accept("SCHEMA"):
        subject = reader.name_as_written() if reader.accept("SUBJECT") else None
        schema_id = reader.whole() if reader.accept("ID") else None
        return st.AssertSchema(subject, schema_id, exists, _timeout(reader), position=place)
    if not reader.testing or not exists:
        reader.fail()
    return _assert_in_test(reader, place)


def _timeout(reader: Reader) -> Duration | None:
    return read_duration(reader) if reader.accept("TIMEOUT") else None


def _assert_in_test(reader: Reader, place: Position) -> st.Statement:
    if reader.accept("VALUES"):
        source, columns = reader.name(), _columns(reader)
        reader.expect("VALUES")
        return st.AssertValues(source, columns, _values(reader), position=place)
    if reader.accept_all("NULL", "VALUES"):
        source, columns = reader.name(), _columns(reader)
        reader.expect("KEY")
        return st.AssertTombstone(source, columns, _values(reader), position=place)
    kind, name = source_kind(reader), reader.name()
    columns_, properties = read_elements(reader), _upper_with(reader)
    created = st.CreateSource(kind, name, columns_, properties, position=place)
    return st.AssertSource(created, position=place)


def _run(reader: Reader, place: Position) -> st.RunScript:
    if not reader.testing:
        raise unknown_statement(reader.tokens, reader.index)
    reader.expect("RUN", "SCRIPT")
    return st.RunScript(reader.text(), position=place)


STATEMENTS: dict[str, Callable[[Reader, Position], st.Statement]] = {
    "ALTER": _alter,
    "ASSERT": _assert,
    "CREATE": _create,
    "DEFINE": _define,
    "DESCRIBE": _describe,
    "DROP": _drop,
    "EXPLAIN": _explain,
    "INSERT": _insert,
    "LIST": _show,
    "PAUSE": _control,
    "PRINT": _print,
    "RESUME": _control,
    "RUN": _run,
    "SELECT": _select,
    "SET": _set,
    "SHOW": _show,
    "TERMINATE": _control,
    "UNDEFINE": _undefine,
    "UNSET": _unset,
}
