"""Parses SELECT.

query  := SELECT item {, item} FROM source {join} [WINDOW window] [WHERE expression]
          [GROUP BY grouping] [PARTITION BY grouping] [HAVING expression]
          [EMIT CHANGES|FINAL] [LIMIT n]
item   := * | name . * | primary -> * | expression [[AS] name]
source := name [[AS] name]
join   := [INNER | LEFT [OUTER] | RIGHT [OUTER] | FULL [OUTER] | OUTER] JOIN source
          [WITHIN within] ON expression
window := [name] TUMBLING ( SIZE duration ... ) | HOPPING ( SIZE duration , ADVANCE BY duration
          ... ) | SESSION ( duration ... ), where ... is [, RETENTION duration] [, GRACE PERIOD
          duration]
"""

from sql.parse.expression_text import read_expression, read_primary, read_value
from sql.parse.reader import Reader
from sql.syntax import queries as qu
from sql.syntax.expressions import Expression

ONE = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
UNITS = frozenset({*ONE, *(f"{each}S" for each in ONE)})
JOIN_WORDS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER")
JOIN_KINDS = {
    "INNER": qu.JoinKind.INNER,
    "LEFT": qu.JoinKind.LEFT,
    "RIGHT": qu.JoinKind.RIGHT,
    "FULL": qu.JoinKind.OUTER,
}


def read_query(reader: Reader) -> qu.Query:
    """Parse a query from its SELECT on."""
    place = reader.position()
    reader.expect("SELECT")
    items = [_item(reader)]
    while reader.accept(","):
        items.append(_item(reader))
    if not reader.accept("FROM"):
        reader.fail(",", "FROM")
    source = _source(reader)
    joins: list[qu.Join] = []
    while reader.word in JOIN_WORDS:
        joins.append(_join(reader))
    return qu.Query(
        tuple(items),
        source,
        tuple(joins),
        _window(reader) if reader.accept("WINDOW") else None,
        read_expression(reader) if reader.accept("WHERE") else None,
        _grouping(reader, "GROUP BY") if reader.accept_all("GROUP", "BY") else (),
        _grouping(reader, "PARTITION BY") if reader.accept_all("PARTITION", "BY") else (),
        read_expression(reader) if reader.accept("HAVING") else None,
        _emit(reader) if reader.accept("EMIT") else qu.EmitClause.NOTHING,
        reader.whole(negative=reader.accept("-")) if reader.accept("LIMIT") else None,
        position=place,
    )


def read_duration(reader: Reader) -> qu.Duration:
    """Parse a number and its unit."""
    place = reader.position()
    count, unit = reader.whole(), reader.word
    if unit not in UNITS:
        reader.fail()
    reader.advance()
    return qu.Duration(count, unit, position=place)


def _item(reader: Reader) -> qu.SelectItem:
    place = reader.position()
    if reader.accept("*"):
        return qu.SelectAll(position=place)
    if reader.next_word() == "." and reader.next_word(2) == "*":
        source = reader.name()
        reader.expect(".", "*")
        return qu.SelectAll(source, position=place)
    start = reader.index
    expression = read_expression(reader)
    if reader.word == "->":
        # Only a whole primary may be followed by ->*: a + b->* is invalid.
        reader.go_to(start)
        struct = read_primary(reader)
        reader.expect("->", "*")
        return qu.SelectFields(struct, position=place)
    alias = reader.name() if reader.accept("AS") or reader.at_name() else None
    return qu.SelectExpression(expression, alias, position=place)


def _source(reader: Reader) -> qu.Source:
    place = reader.position()
    name = reader.name()
    clause = (reader.word, reader.next_word())
    follows = clause in (("PARTITION", "BY"), ("EMIT", "CHANGES"), ("EMIT", "FINAL"))
    if reader.accept("AS") or (reader.at_name() and not follows):
        return qu.Source(name, reader.name(), position=place)
    return qu.Source(name, name, position=place)


def _join(reader: Reader) -> qu.Join:
    place = reader.position()
    kind = JOIN_KINDS.get(reader.word)
    if kind is not None:
        reader.advance()
    outer = kind is not qu.JoinKind.INNER and reader.accept("OUTER")
    reader.expect("JOIN")
    if kind is None:
        kind = qu.JoinKind.OUTER if outer else qu.JoinKind.INNER
    right = _source(reader)
    within = _within(reader) if reader.word == "WITHIN" else None
    reader.expect("ON")
    return qu.Join(kind, right, read_expression(reader), within, position=place)


def _within(reader: Reader) -> qu.Within:
    place = reader.position()
    reader.expect("WITHIN")
    if reader.accept("("):
        before = read_duration(reader)
        reader.expect(",")
        after = read_duration(reader)
        reader.expect(")")
    else:
        before = after = read_duration(reader)
    grace = read_duration(reader) if reader.accept_all("GRACE", "PERIOD") else None
    return qu.Within(before, after, grace, position=place)


def _window(reader: Reader) -> qu.Window:
    # A window may have a name, which has no effect.
    if reader.at_name() and (reader.word != "SESSION" or reader.next_word() != "("):
        reader.advance()
    place = reader.position()
    if reader.word not in ("TUMBLING", "HOPPING", "SESSION"):
        reader.fail("SESSION", "TUMBLING", "HOPPING")
    kind = qu.WindowKind(reader.word)
    reader.advance()
    reader.expect("(")
    if kind is not qu.WindowKind.SESSION:
        reader.expect("SIZE")
    size, advance = read_duration(reader), None
    if kind is qu.WindowKind.HOPPING:
        reader.expect(",", "ADVANCE", "BY")
        advance = read_duration(reader)
    retention = read_duration(reader) if reader.accept_all(",", "RETENTION") else None
    grace = read_duration(reader) if reader.accept_all(",", "GRACE", "PERIOD") else None
    if not reader.accept(")"):
        reader.fail(",", ")")
    return qu.Window(kind, size, advance, retention, grace, position=place)


def _grouping(reader: Reader, clause: str) -> tuple[Expression, ...]:
    """Parse values, with or without parentheses around them."""
    place = reader.position()
    if reader.accept_all("(", ")"):
        reader.fail_at(place, f"{clause} requires at least one expression")
    bracketed = reader.word == "(" and _contains_comma(reader)
    if bracketed:
        reader.advance()
    found = [read_value(reader)]
    while reader.accept(","):
        found.append(read_value(reader))
    if bracketed:
        reader.expect(")")
    return tuple(found)


def _contains_comma(reader: Reader) -> bool:
    """Whether the parentheses directly contain a comma: (a, b), not (f(a, b))."""
    depth = 0
    for word in reader.tokens.words[reader.index :]:
        if word in ("(", "["):
            depth += 1
        elif word in (")", "]"):
            depth -= 1
        if depth == 0 or word in (";", "SELECT"):
            return False
        if word == "," and depth == 1:
            return True
    return False


def _emit(reader: Reader) -> qu.EmitClause:
    if reader.word not in ("CHANGES", "FINAL"):
        reader.fail("CHANGES", "FINAL")
    emit = qu.EmitClause(reader.word)
    reader.advance()
    return emit
