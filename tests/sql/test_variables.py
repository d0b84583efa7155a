"""Scripts are cut into statements, and variables never bring more than one value."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sql.errors import SyntaxFailed
from sql.parse import parse, parse_statement
from sql.parse.text import ParsedStatement
from sql.printer import print_statement
from sql.syntax import statements as st
from sql.syntax.node import Position
from sql.variables import split_statements, substitute
from tests.support import sql_trees

VARIABLES = {
    "REGION": "eu",
    "NAME": "orders",
    "QUOTED": "`Orders`",
    "COUNT": "5",
    "LESS": "-5",
    "YES": "True",
    "TEXT": "'it''s'",
    "ODD": "it's",
    "SCHEMA": "s (a, b)",
    "MORE": "5 OR true",
    "CLAUSE": "'t', value_format='AVRO'",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PRINT 'orders_${region}';", "PRINT 'orders_eu';"),
        ("PRINT 'orders_${REGION}_${unknown}';", "PRINT 'orders_eu_${unknown}';"),
        ("PRINT '$${region}';", "PRINT '${region}';"),
        ("DEFINE a = '$${${region}}';", "DEFINE a = '${eu}';"),
        ("PRINT '${odd}';", "PRINT 'it''s';"),
        ("PRINT '${text}';", "PRINT '''it''''s''';"),
        ("DROP STREAM ${name};", "DROP STREAM orders;"),
        ("DESCRIBE ${quoted} EXTENDED;", "DESCRIBE `Orders` EXTENDED;"),
        ("PRINT ${name} LIMIT ${count};", "PRINT orders LIMIT 5;"),
        (
            "INSERT INTO ${name} VALUES (${count}, ${yes}, ${text});",
            "INSERT INTO orders VALUES (5, True, 'it''s');",
        ),
        ("SELECT a -${less} FROM s;", "SELECT a - -5 FROM s;"),
        ("SELECT ${name}.a FROM ${name};", "SELECT orders.a FROM orders;"),
        (
            "CREATE STREAM s WITH (kafka_topic=${clause});",
            "CREATE STREAM s WITH (kafka_topic='t'', value_format=''AVRO');",
        ),
        ("SET 'a' = ${text};", "SET 'a' = 'it''s';"),
        ("DROP STREAM s; -- ${name}", "DROP STREAM s; -- ${name}"),
        ("DESCRIBE `${name}`;", "DESCRIBE `${name}`;"),
        ("SHOW STREAMS", "SHOW STREAMS"),
    ],
)
def test_variables_are_replaced_by_their_values(text: str, expected: str) -> None:
    assert substitute(text, VARIABLES) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("INSERT INTO ${schema} VALUES (1);", "Illegal argument at Line: 1, Col: 13. Identifier"),
        ("SELECT * FROM s\nWHERE a = ${more};", "Illegal argument at Line: 2, Col: 11. Got: '5 OR"),
        ("SELECT ${name} FROM s;", "Illegal argument at Line: 1, Col: 8. Got: 'orders'"),
        ("DROP STREAM ${unknown};", "Got: '${unknown}'"),
        ("DROP STREAM ${count};", "Identifier names"),
        ("DROP ${name};", "is not allowed here"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(text: str, says: str) -> None:
    with pytest.raises(SyntaxFailed) as caught:
        substitute(text, VARIABLES)
    assert says in caught.value.message


def test_values_cannot_make_a_text_too_long() -> None:
    with pytest.raises(SyntaxFailed, match="more than"):
        substitute("SET 'a' = '${a}${a}';", {"A": "x" * 6_000_000})


TEMPLATES = (
    "SELECT a, '${v}' FROM s WHERE b = ${v} AND c;",
    "CREATE STREAM ${v} WITH (kafka_topic='${v}', partitions=3);",
    "INSERT INTO s (a, b) VALUES (${v}, -${v});",
)


@given(some.sampled_from(TEMPLATES), some.text(alphabet="aB1.'`\"-*/;(), \n=$e{}", max_size=12))
def test_no_value_changes_more_than_its_own_place(template: str, value: str) -> None:
    try:
        text = substitute(template, {"V": value})
    except SyntaxFailed:
        return
    try:
        found = parse(text)
    except SyntaxFailed:
        return
    assert len(found) == 1
    harmless = parse(template.replace("'${v}'", "'x'").replace("${v}", _plain(value)))
    assert _shape(found[0]) == _shape(harmless[0])


def _plain(value: str) -> str:
    return "1" if value[:1] in "0123456789.-'" or value.lower() in ("true", "false") else "x"


def _shape(parsed: ParsedStatement) -> list[object]:
    """The statement with everything that is no value left out."""
    statement = parsed.statement
    if isinstance(statement, st.InsertValues):
        return [len(statement.values), statement.columns]
    if isinstance(statement, st.CreateSource):
        return [[name for name, _ in statement.properties], statement.columns]
    assert isinstance(statement, st.Select)
    assert statement.query.where is not None
    return [len(statement.query.items), type(statement.query.where), statement.query.source]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("  -- nothing\n /* at all */", []),
        ("SHOW STREAMS;", [("SHOW STREAMS;", True)]),
        ("a;b", [("a;", True), ("b", False)]),
        ("a ';'; b `;` \";\";", [("a ';';", True), ('b `;` ";";', True)]),
        ("a -- ;\n b; /* ; */ c;", [("a -- ;\n b;", True), ("/* ; */ c;", True)]),
        ("a 'open; b;", [("a 'open; b;", False)]),
        ("a; /* open ; b;", [("a;", True), ("/* open ; b;", False)]),
        ("a\n\n", [("a", False)]),
        (";;", [(";", True), (";", True)]),
        ("SELECT 1 -- the end;", [("SELECT 1 -- the end;", False)]),
    ],
)
def test_scripts_are_cut_at_semicolons_outside_quotes_and_comments(
    text: str, parts: list[tuple[str, bool]]
) -> None:
    assert [(each.text, each.is_complete) for each in split_statements(text)] == parts


@pytest.mark.slow
@pytest.mark.parametrize("text", [";" * 1_000_000, "a " * 1_500_000, "x" * 10_000_001])
def test_long_scripts_are_refused(text: str) -> None:
    with pytest.raises(SyntaxFailed, match="the text has"):
        split_statements(text)


def test_a_part_knows_where_it_stands_and_so_do_its_errors() -> None:
    text = "SHOW STREAMS; -- first\n\n  DROP\n  ${name} s;"
    part = split_statements(text)[1]
    assert part.position == Position(1, 15)
    _, last = split_statements(text.replace("-- first", ""))
    assert last.position == Position(3, 3)
    with pytest.raises(SyntaxFailed) as caught:
        parse("DROP\n  `x` s;", start=last.position)
    assert (caught.value.line, caught.value.column) == (4, 3)
    with pytest.raises(SyntaxFailed) as caught:
        parse("DROP;", start=last.position)
    assert (caught.value.line, caught.value.column) == (3, 7)
    with pytest.raises(SyntaxFailed) as caught:
        parse("DROP", start=last.position)
    assert (caught.value.line, caught.value.column) == (3, 7)


@given(some.text(alphabet="ab'`\";-/*\n ${}", max_size=60))
def test_what_is_cut_is_cut_again_in_the_same_way(text: str) -> None:
    parts = split_statements(text)
    assert all(each.text in text for each in parts)
    assert all(each.is_complete for each in parts[:-1])
    assert [each.text for each in split_statements("\n".join(each.text for each in parts))] == [
        each.text for each in parts
    ]


@pytest.mark.slow
@given(some.lists(sql_trees.statements, max_size=3))
def test_printed_statements_are_found_again(statements: list[st.Statement]) -> None:
    texts = [f"{print_statement(each)};" for each in statements]
    parts = split_statements("\n".join(texts))
    assert [each.text for each in parts] == texts
    assert [parse_statement(each.text, testing=True) for each in parts] == statements
