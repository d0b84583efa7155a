"""Help: a description of each statement, its syntax, and a runnable example."""

from dataclasses import dataclass
from difflib import get_close_matches

from sql.syntax import statements as st


@dataclass(frozen=True, slots=True)
class StatementHelp:
    """One statement: its first words, a one-line description, its syntax and an example."""

    name: str
    about: str
    form: str
    example: str
    kind: type


HELP = (
    StatementHelp(
        "CREATE STREAM",
        "Creates a stream on a topic.",
        "CREATE [OR REPLACE] [SOURCE] STREAM [IF NOT EXISTS] name\n"
        "  (column type [KEY | HEADERS | HEADER('key')], ...) WITH (property = value, ...)",
        "CREATE STREAM orders (id INT KEY, customer STRING, amount DECIMAL(9, 2))\n"
        "  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=4);",
        st.CreateSource,
    ),
    StatementHelp(
        "CREATE TABLE",
        "Creates a table on a topic: the latest record of each key.",
        "CREATE [OR REPLACE] [SOURCE] TABLE [IF NOT EXISTS] name\n"
        "  (column type PRIMARY KEY, column type, ...) WITH (property = value, ...)",
        "CREATE TABLE customers (id STRING PRIMARY KEY, name STRING)\n"
        "  WITH (KAFKA_TOPIC='customers', VALUE_FORMAT='JSON', PARTITIONS=4);",
        st.CreateSource,
    ),
    StatementHelp(
        "CREATE STREAM AS SELECT",
        "Creates a stream from a query, which runs until it is terminated.",
        "CREATE [OR REPLACE] STREAM [IF NOT EXISTS] name [WITH (property = value, ...)]\n"
        "  AS SELECT ...",
        "CREATE STREAM large_orders AS SELECT * FROM orders WHERE amount > 1000 EMIT CHANGES;",
        st.CreateAsSelect,
    ),
    StatementHelp(
        "CREATE TABLE AS SELECT",
        "Creates a table from a query, which runs until it is terminated.",
        "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [WITH (property = value, ...)]\n"
        "  AS SELECT ...",
        "CREATE TABLE totals AS SELECT customer, SUM(amount) AS total FROM orders\n"
        "  WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY customer EMIT CHANGES;",
        st.CreateAsSelect,
    ),
    StatementHelp(
        "INSERT INTO SELECT",
        "Writes the results of a query to a stream; runs until it is terminated.",
        "INSERT INTO stream [WITH (QUERY_ID = 'id')] SELECT ...",
        "INSERT INTO all_orders SELECT * FROM orders EMIT CHANGES;",
        st.InsertSelect,
    ),
    StatementHelp(
        "INSERT INTO VALUES",
        "Writes one record to the topic of a stream or table.",
        "INSERT INTO name [(column, ...)] VALUES (value, ...)",
        "INSERT INTO orders (id, customer, amount) VALUES (1, 'ann', 12.50);",
        st.InsertValues,
    ),
    StatementHelp(
        "SELECT",
        "Shows changes as they happen (push query, EMIT), or the current rows (pull query).",
        "SELECT expression [AS name], ... FROM source [alias]\n"
        "  [[INNER | LEFT | RIGHT | FULL] JOIN source [WITHIN duration] ON condition ...]\n"
        "  [WINDOW TUMBLING | HOPPING | SESSION (...)] [WHERE condition]\n"
        "  [GROUP BY value, ...] [PARTITION BY value, ...] [HAVING condition]\n"
        "  [EMIT CHANGES | EMIT FINAL] [LIMIT n]",
        "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id\n"
        "  WHERE o.amount > 10 EMIT CHANGES LIMIT 5;",
        st.Select,
    ),
    StatementHelp(
        "ALTER STREAM, ALTER TABLE",
        "Adds columns to a stream or table that was created with columns.",
        "ALTER STREAM | TABLE name ADD [COLUMN] column type, ...",
        "ALTER STREAM orders ADD COLUMN note STRING;",
        st.AlterSource,
    ),
    StatementHelp(
        "ALTER SYSTEM",
        "Changes a property of the server.",
        "ALTER SYSTEM 'name' = 'value'",
        "ALTER SYSTEM 'ksql.streams.num.stream.threads' = '2';",
        st.AlterSystem,
    ),
    StatementHelp(
        "DROP STREAM, DROP TABLE",
        "Drops a stream or table and terminates the query that created it.",
        "DROP STREAM | TABLE [IF EXISTS] name [DELETE TOPIC]",
        "DROP STREAM IF EXISTS large_orders DELETE TOPIC;",
        st.DropSource,
    ),
    StatementHelp(
        "CREATE TYPE",
        "Creates a custom type: a name for a type.",
        "CREATE TYPE [IF NOT EXISTS] name AS type",
        "CREATE TYPE address AS STRUCT<street STRING, number INT>;",
        st.CreateType,
    ),
    StatementHelp(
        "DROP TYPE",
        "Drops a custom type.",
        "DROP TYPE [IF EXISTS] name",
        "DROP TYPE IF EXISTS address;",
        st.DropType,
    ),
    StatementHelp(
        "CREATE CONNECTOR",
        "Creates a connector that imports (SOURCE) or exports (SINK) data.",
        "CREATE SOURCE | SINK CONNECTOR [IF NOT EXISTS] name WITH ('setting' = 'value', ...)",
        "CREATE SOURCE CONNECTOR files WITH ('connector.class'='FileStreamSource', 'topic'='t');",
        st.CreateConnector,
    ),
    StatementHelp(
        "DROP CONNECTOR",
        "Drops a connector.",
        "DROP CONNECTOR [IF EXISTS] name",
        "DROP CONNECTOR files;",
        st.DropConnector,
    ),
    StatementHelp(
        "SHOW",
        "Lists streams, tables, topics and so on; LIST is the same.",
        "SHOW STREAMS | TABLES | [ALL] TOPICS | QUERIES [EXTENDED]\n"
        "SHOW FUNCTIONS | TYPES | VARIABLES | PROPERTIES\n"
        "SHOW [SOURCE | SINK] CONNECTORS | CONNECTOR PLUGINS",
        "SHOW STREAMS EXTENDED;",
        st.Show,
    ),
    StatementHelp(
        "DESCRIBE",
        "Shows the columns of a stream or table; EXTENDED adds its topic, queries and statistics.",
        "DESCRIBE name [EXTENDED]",
        "DESCRIBE orders EXTENDED;",
        st.DescribeSource,
    ),
    StatementHelp(
        "DESCRIBE STREAMS, DESCRIBE TABLES",
        "Describes all streams or all tables.",
        "DESCRIBE STREAMS | TABLES [EXTENDED]",
        "DESCRIBE TABLES;",
        st.DescribeSources,
    ),
    StatementHelp(
        "DESCRIBE FUNCTION",
        "Shows what a function does and its parameters.",
        "DESCRIBE FUNCTION name",
        "DESCRIBE FUNCTION substring;",
        st.DescribeFunction,
    ),
    StatementHelp(
        "DESCRIBE CONNECTOR",
        "Shows the state of a connector.",
        "DESCRIBE CONNECTOR name",
        "DESCRIBE CONNECTOR files;",
        st.DescribeConnector,
    ),
    StatementHelp(
        "EXPLAIN",
        "Shows the execution plan of a query.",
        "EXPLAIN statement | query id",
        "EXPLAIN SELECT * FROM orders EMIT CHANGES;",
        st.Explain,
    ),
    StatementHelp(
        "PRINT",
        "Shows the records of a topic as they arrive.",
        "PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]",
        "PRINT 'orders' FROM BEGINNING LIMIT 3;",
        st.Print,
    ),
    StatementHelp(
        "TERMINATE, PAUSE, RESUME",
        "Terminates, pauses or resumes a persistent query.",
        "TERMINATE | PAUSE | RESUME query id | ALL",
        "PAUSE csas_large_orders_1;",
        st.ControlQuery,
    ),
    StatementHelp(
        "SET",
        "Sets a property of this session.",
        "SET 'name' = 'value'",
        "SET 'auto.offset.reset' = 'earliest';",
        st.SetProperty,
    ),
    StatementHelp(
        "UNSET",
        "Resets a property of this session to its default.",
        "UNSET 'name'",
        "UNSET 'auto.offset.reset';",
        st.UnsetProperty,
    ),
    StatementHelp(
        "DEFINE",
        "Defines a variable, which later statements use as ${name}.",
        "DEFINE name = 'value'",
        "DEFINE topic = 'orders';",
        st.DefineVariable,
    ),
    StatementHelp(
        "UNDEFINE",
        "Removes a variable.",
        "UNDEFINE name",
        "UNDEFINE topic;",
        st.UndefineVariable,
    ),
    StatementHelp(
        "ASSERT TOPIC",
        "Fails if a topic does not exist within the timeout.",
        "ASSERT [NOT EXISTS] TOPIC name [WITH (PARTITIONS = n, REPLICAS = n)] [TIMEOUT duration]",
        "ASSERT TOPIC orders WITH (PARTITIONS=4) TIMEOUT 10 SECONDS;",
        st.AssertTopic,
    ),
    StatementHelp(
        "ASSERT SCHEMA",
        "Fails if a schema is not in the registry within the timeout.",
        "ASSERT [NOT EXISTS] SCHEMA [SUBJECT name] [ID n] [TIMEOUT duration]",
        "ASSERT SCHEMA SUBJECT 'orders-value' TIMEOUT 10 SECONDS;",
        st.AssertSchema,
    ),
    StatementHelp(
        "RUN SCRIPT",
        "Runs the statements of a file; only in the shell and in test scripts.",
        "RUN SCRIPT 'file'",
        "RUN SCRIPT 'streams.sql';",
        st.RunScript,
    ),
    StatementHelp(
        "ASSERT VALUES",
        "Fails if the next record differs; only in test scripts.",
        "ASSERT VALUES source [(column, ...)] VALUES (value, ...)",
        "ASSERT VALUES large_orders (id, amount) VALUES (1, 1200.00);",
        st.AssertValues,
    ),
    StatementHelp(
        "ASSERT NULL VALUES",
        "Fails if the next record is not a tombstone for this key; only in test scripts.",
        "ASSERT NULL VALUES source [(column, ...)] KEY (value, ...)",
        "ASSERT NULL VALUES totals (customer) KEY ('ann');",
        st.AssertTombstone,
    ),
    StatementHelp(
        "ASSERT STREAM, ASSERT TABLE",
        "Fails if a stream or table has other columns or properties; only in test scripts.",
        "ASSERT STREAM | TABLE name (column type, ...) WITH (property = value, ...)",
        "ASSERT STREAM orders (id INT KEY, customer STRING) WITH (KAFKA_TOPIC='orders');",
        st.AssertSource,
    ),
)


def help_about(words: str) -> list[StatementHelp]:
    """The statements that some words may refer to, such as "create table".

    >>> [each.name for each in help_about("drop type")]
    ['DROP TYPE']
    """
    asked = " ".join(words.upper().rstrip("; ").split())
    names = [(name, each) for each in HELP for name in each.name.split(", ")]
    begins = [each for name, each in names if f"{name} ".startswith(f"{asked} ")]
    if begins or not asked:
        return list(dict.fromkeys(begins)) if asked else list(HELP)
    close = get_close_matches(asked[:60], [name for name, _ in names], n=1)
    return [each for name, each in names if name in close]
