"""Parses CREATE STREAM and CREATE TABLE, and their columns."""

from collections.abc import Callable

from sql.parse.reader import Reader
from sql.parse.type_text import read_type
from sql.syntax import statements as st
from sql.syntax.node import Position

PropertiesReader = Callable[[Reader], st.Properties]
TABLE_KEYS = (
    "\nTables have PRIMARY KEYs, which are unique and NON NULL.\n"
    "Streams have KEYs, which have no uniqueness or NON NULL constraints."
)


def source_kind(reader: Reader) -> st.SourceKind:
    """Parse STREAM or TABLE."""
    if reader.word not in ("STREAM", "TABLE"):
        reader.fail()
    kind = st.SourceKind(reader.word)
    reader.advance()
    return kind


def read_create_source(
    reader: Reader, place: Position, read_properties: PropertiesReader
) -> st.CreateSource:
    """CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name [(columns)] [WITH (...)]."""
    reader.expect("CREATE")
    or_replace = reader.accept("OR")
    if or_replace:
        reader.expect("REPLACE")
    is_source = reader.accept("SOURCE")
    kind = source_kind(reader)
    exists = reader.accept_all("IF", "NOT", "EXISTS")
    name = reader.name()
    columns = read_elements(reader)
    _check_keys(reader, kind, columns)
    return st.CreateSource(
        kind,
        name,
        columns,
        read_properties(reader),
        or_replace,
        exists,
        is_source,
        position=place,
    )


def read_elements(reader: Reader) -> tuple[st.ColumnDefinition, ...]:
    """Parse (name type [role], ...), if present."""
    if not reader.accept("("):
        return ()
    found = [_element(reader)]
    while reader.accept(","):
        found.append(_element(reader))
    if not reader.accept(")"):
        reader.fail(",", ")")
    return tuple(found)


def _element(reader: Reader) -> st.ColumnDefinition:
    place = reader.position()
    name, type_ = reader.name(), read_type(reader)
    role, header = st.ColumnRole.VALUE, None
    if reader.accept("KEY"):
        role = st.ColumnRole.KEY
    elif reader.accept("PRIMARY"):
        reader.expect("KEY")
        role = st.ColumnRole.PRIMARY_KEY
    elif reader.accept("HEADERS"):
        role = st.ColumnRole.HEADERS
    elif reader.accept("HEADER"):
        reader.expect("(")
        role, header = st.ColumnRole.HEADER, reader.text()
        reader.expect(")")
    return st.ColumnDefinition(name, type_, role, header, position=place)


def _check_keys(
    reader: Reader, kind: st.SourceKind, columns: tuple[st.ColumnDefinition, ...]
) -> None:
    """Check that streams have KEY columns, and tables PRIMARY KEY columns."""
    wrong, right, why = st.ColumnRole.PRIMARY_KEY, st.ColumnRole.KEY, ""
    if kind is st.SourceKind.TABLE:
        wrong, right, why = right, wrong, TABLE_KEYS
    for column in columns:
        if column.role is wrong:
            reader.refuse_column(
                column.position,
                f"Column `{column.name}` is a '{wrong.value}' column: "
                f"please use '{right.value}' for {kind.value.lower()}s.{why}",
            )
