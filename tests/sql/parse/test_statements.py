"""Every way to write a statement, and the one way in which it is printed."""

import pytest

from sql.errors import SyntaxFailed
from sql.parse import parse_statement, parse_type
from sql.printer import print_statement, print_type

FORMS = [
    (
        "create or replace source stream if not exists s (a int key, h array<struct<key string, "
        "value bytes>> headers, b bytes header('b')) with (kafka_topic='t', partitions=-1)",
        "CREATE OR REPLACE SOURCE STREAM IF NOT EXISTS S (A INT KEY, H ARRAY<STRUCT<KEY STRING, "
        "VALUE BYTES>> HEADERS, B BYTES HEADER('b')) WITH (KAFKA_TOPIC='t', PARTITIONS=-1)",
    ),
    ("CREATE TABLE t (a INT PRIMARY KEY)", "CREATE TABLE T (A INT PRIMARY KEY)"),
    ("CREATE STREAM if WITH ('kafka_topic'='t')", "CREATE STREAM IF WITH (KAFKA_TOPIC='t')"),
    ("CREATE STREAM s WITH ()", "CREATE STREAM S"),
    ('CREATE STREAM "s" AS SELECT * FROM a', "CREATE STREAM `s` AS SELECT * FROM A"),
    (
        "INSERT INTO s WITH (query_id='q') SELECT a.*, b->* FROM c",
        "INSERT INTO S WITH (QUERY_ID='q') SELECT A.*, B->* FROM C",
    ),
    ("INSERT INTO s VALUES (1, -2.50)", "INSERT INTO S VALUES (1, -2.50)"),
    ("INSERT INTO s (a, `b`) VALUES ()", "INSERT INTO S (A, `b`) VALUES ()"),
    (
        "ALTER STREAM s ADD a INT, ADD COLUMN b MAP<STRING, INT>",
        "ALTER STREAM S ADD COLUMN A INT, ADD COLUMN B MAP<STRING, INT>",
    ),
    ("ALTER TABLE s ADD column INT", "ALTER TABLE S ADD COLUMN COLUMN INT"),
    ("ALTER TABLE s ADD column decimal(3, 2)", "ALTER TABLE S ADD COLUMN COLUMN DECIMAL(3, 2)"),
    ("ALTER SYSTEM 'a'='b'", "ALTER SYSTEM 'a' = 'b'"),
    ("DROP TABLE IF EXISTS t DELETE TOPIC", "DROP TABLE IF EXISTS T DELETE TOPIC"),
    ("CREATE TYPE IF NOT EXISTS t AS STRUCT<>", "CREATE TYPE IF NOT EXISTS T AS STRUCT<>"),
    ("DROP TYPE t", "DROP TYPE T"),
    (
        "CREATE SINK CONNECTOR IF NOT EXISTS c WITH ('a.b'='c', d=1)",
        "CREATE SINK CONNECTOR IF NOT EXISTS C WITH ('a.b'='c', 'D'=1)",
    ),
    ("DROP CONNECTOR IF EXISTS c", "DROP CONNECTOR IF EXISTS C"),
    ("LIST ALL TOPICS EXTENDED", "SHOW ALL TOPICS EXTENDED"),
    ("list connector plugins", "SHOW CONNECTOR PLUGINS"),
    ("SHOW SINK CONNECTORS", "SHOW SINK CONNECTORS"),
    ("DESCRIBE tables EXTENDED", "DESCRIBE TABLES EXTENDED"),
    ("DESCRIBE `TABLES`", "DESCRIBE `TABLES`"),
    ("DESCRIBE function", "DESCRIBE FUNCTION"),
    ("DESCRIBE FUNCTION abs", "DESCRIBE FUNCTION ABS"),
    ("DESCRIBE 'lower'", "DESCRIBE `lower`"),
    ("EXPLAIN csas_1", "EXPLAIN CSAS_1"),
    ("EXPLAIN `SHOW`", "EXPLAIN `SHOW`"),
    ("EXPLAIN show", "EXPLAIN `SHOW`"),
    ("EXPLAIN DROP STREAM s", "EXPLAIN DROP STREAM S"),
    ("PRINT Orders SAMPLE 2 LIMIT 3", "PRINT 'Orders' INTERVAL 2 LIMIT 3"),
    ("PRINT `a b` FROM BEGINNING", "PRINT 'a b' FROM BEGINNING"),
    ("TERMINATE all", "TERMINATE ALL"),
    ("RESUME q_1", "RESUME Q_1"),
    ("UNSET 'a'", "UNSET 'a'"),
    ("DEFINE limit = '''x'''", "DEFINE `LIMIT` = '''x'''"),
    ("UNDEFINE v", "UNDEFINE V"),
    (
        "ASSERT NOT EXISTS TOPIC Orders WITH (partitions=3) TIMEOUT 5 seconds",
        "ASSERT NOT EXISTS TOPIC 'Orders' WITH (PARTITIONS=3) TIMEOUT 5 SECONDS",
    ),
    ("ASSERT SCHEMA SUBJECT a ID 3", "ASSERT SCHEMA SUBJECT 'a' ID 3"),
    (
        "SELECT a b, c AS d, count(*) FROM s t WINDOW w SESSION (5 MINUTE, RETENTION 1 DAY) "
        "WHERE a != 1 GROUP BY (a, b) HAVING c EMIT FINAL LIMIT -1",
        "SELECT A AS B, C AS D, COUNT(*) FROM S AS T WINDOW SESSION (5 MINUTE, RETENTION 1 DAY) "
        "WHERE A <> 1 GROUP BY A, B HAVING C EMIT FINAL LIMIT -1",
    ),
    (
        "SELECT * FROM a WINDOW HOPPING (SIZE 5 DAYS, ADVANCE BY 1 millisecond)",
        "SELECT * FROM A WINDOW HOPPING (SIZE 5 DAYS, ADVANCE BY 1 MILLISECOND)",
    ),
    (
        "SELECT * FROM a JOIN b WITHIN 1 HOUR GRACE PERIOD 2 HOURS ON a.x = b.x "
        "LEFT OUTER JOIN c WITHIN (1 DAY, 2 DAYS) ON a.x = c.x OUTER JOIN d ON TRUE",
        "SELECT * FROM A INNER JOIN B WITHIN 1 HOUR GRACE PERIOD 2 HOURS ON A.X = B.X "
        "LEFT JOIN C WITHIN (1 DAY, 2 DAYS) ON A.X = C.X FULL OUTER JOIN D ON TRUE",
    ),
    ("SELECT * FROM s emit EMIT CHANGES", "SELECT * FROM S AS EMIT EMIT CHANGES"),
    ("SELECT * FROM s PARTITION BY NULL", "SELECT * FROM S PARTITION BY NULL"),
    ("SELECT a FROM s GROUP BY (a + 1) * 2", "SELECT A FROM S GROUP BY (A + 1) * 2"),
    ("SELECT a FROM s GROUP BY (f(a, b)), (c = d)", "SELECT A FROM S GROUP BY F(A, B), (C = D)"),
    ("RUN SCRIPT 'a.sql'", "RUN SCRIPT 'a.sql'"),
    ("ASSERT VALUES s (a) VALUES (1)", "ASSERT VALUES S (A) VALUES (1)"),
    ("ASSERT NULL VALUES s KEY (1)", "ASSERT NULL VALUES S KEY (1)"),
    ("ASSERT TABLE t (a INT KEY)", "ASSERT TABLE T (A INT KEY)"),
]


@pytest.mark.parametrize(("text", "printed"), FORMS, ids=[text[:40] for text, _ in FORMS])
def test_a_statement_is_read_in_all_its_forms(text: str, printed: str) -> None:
    assert print_statement(parse_statement(text, testing=True)) == printed
    assert parse_statement(f"{text} ; -- the end", testing=True) == parse_statement(
        printed, testing=True
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("varchar(string)", "VARCHAR"),
        ("varchar(10)", "VARCHAR(10)"),
        ("decimal(-1, 2)", "DECIMAL(-1, 2)"),
        ("map", "`MAP`"),
        ("ARRAY<MAP<STRING, STRUCT<a INT>>>", "ARRAY<MAP<STRING, STRUCT<A INT>>>"),
        ("struct< >", "STRUCT<>"),
    ],
)
def test_a_type_is_read_in_all_its_forms(text: str, printed: str) -> None:
    assert print_type(parse_type(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM s (a INT) AS SELECT * FROM b",
        "CREATE SOURCE STREAM s AS SELECT * FROM b",
        "CREATE VIEW v AS SELECT * FROM b",
        "CREATE SOURCE CONNECTOR c",
        "INSERT s VALUES (1)",
        "INSERT INTO s (a)",
        "SHOW MERCY",
        "SHOW FUNCTIONS EXTENDED",
        "DROP SCHEMA s",
        "SELECT * FROM a LEFT JOIN b",
        "SELECT * FROM a INNER OUTER JOIN b ON c",
        "SELECT a + b->* FROM s",
        "SELECT f(a, *) FROM s",
        "SELECT * FROM s WINDOW TUMBLING (SIZE 5 FORTNIGHTS)",
        "SELECT * FROM s WINDOW w (SIZE 5 DAYS)",
        "SELECT * FROM s WITHIN 5 DAYS",
        "SELECT * FROM s EMIT EVERYTHING",
        "SELECT * FROM s LIMIT 1.5",
        "ASSERT NOT EXISTS STREAM s",
        "TERMINATE",
        "SELECT * FROM s GROUP BY ()",
        "SET a = 'b'",
        "SHOW STREAMS; SHOW TABLES",
    ],
)
def test_what_is_no_statement_is_refused(text: str) -> None:
    with pytest.raises(SyntaxFailed):
        parse_statement(text, testing=True)
