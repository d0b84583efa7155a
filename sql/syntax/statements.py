"""Syntax trees of statements."""

from dataclasses import dataclass
from enum import Enum

from sql.syntax.expressions import Expression, Literal
from sql.syntax.node import Node
from sql.syntax.queries import Duration, Query
from sql.syntax.type_names import TypeSyntax


class SourceKind(Enum):
    """The kind of a source."""

    STREAM = "STREAM"
    TABLE = "TABLE"


class ColumnRole(Enum):
    """The role of a column in its definition."""

    VALUE = ""
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"
    HEADER = "HEADER"  # a single header, named by ColumnDefinition.header


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    """name type [KEY | PRIMARY KEY | HEADERS | HEADER('key')]."""

    name: str
    type: TypeSyntax
    role: ColumnRole = ColumnRole.VALUE
    header: str | None = None


# WITH (NAME = literal, ...): names upper case, in the order of the statement.
Properties = tuple[tuple[str, Literal], ...]


@dataclass(frozen=True, slots=True)
class CreateSource(Node):
    """CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name (columns) WITH (...)."""

    kind: SourceKind
    name: str
    columns: tuple[ColumnDefinition, ...]
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True, slots=True)
class CreateAsSelect(Node):
    """CREATE [OR REPLACE] STREAM|TABLE [IF NOT EXISTS] name WITH (...) AS SELECT ..."""

    kind: SourceKind
    name: str
    query: Query
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertSelect(Node):
    """INSERT INTO target [WITH (QUERY_ID = ...)] SELECT ..."""

    target: str
    query: Query
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class InsertValues(Node):
    """INSERT INTO target [(columns)] VALUES (...)."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A push or pull query."""

    query: Query


@dataclass(frozen=True, slots=True)
class AlterSource(Node):
    """ALTER STREAM|TABLE name ADD [COLUMN] column type, ..."""

    kind: SourceKind
    name: str
    added: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class AlterSystem(Node):
    """ALTER SYSTEM 'name' = 'value'."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DropSource(Node):
    """DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]."""

    kind: SourceKind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class CreateType(Node):
    """CREATE TYPE [IF NOT EXISTS] name AS type."""

    name: str
    type: TypeSyntax
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropType(Node):
    """DROP TYPE [IF EXISTS] name."""

    name: str
    if_exists: bool = False


class ConnectorKind(Enum):
    """The direction of a connector."""

    SOURCE = "SOURCE"
    SINK = "SINK"


@dataclass(frozen=True, slots=True)
class CreateConnector(Node):
    """CREATE SOURCE|SINK CONNECTOR [IF NOT EXISTS] name WITH (...); settings as written."""

    kind: ConnectorKind
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConnector(Node):
    """DROP CONNECTOR [IF EXISTS] name."""

    name: str
    if_exists: bool = False


class Listing(Enum):
    """The objects that SHOW lists."""

    PROPERTIES = "PROPERTIES"
    TOPICS = "TOPICS"
    ALL_TOPICS = "ALL TOPICS"
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    FUNCTIONS = "FUNCTIONS"
    CONNECTORS = "CONNECTORS"
    SOURCE_CONNECTORS = "SOURCE CONNECTORS"
    SINK_CONNECTORS = "SINK CONNECTORS"
    CONNECTOR_PLUGINS = "CONNECTOR PLUGINS"
    TYPES = "TYPES"
    VARIABLES = "VARIABLES"
    QUERIES = "QUERIES"


@dataclass(frozen=True, slots=True)
class Show(Node):
    """SHOW|LIST what [EXTENDED]."""

    what: Listing
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeSource(Node):
    """DESCRIBE name [EXTENDED]."""

    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeSources(Node):
    """DESCRIBE STREAMS|TABLES [EXTENDED]."""

    kind: SourceKind
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeFunction(Node):
    """DESCRIBE FUNCTION name."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribeConnector(Node):
    """DESCRIBE CONNECTOR name."""

    name: str


@dataclass(frozen=True, slots=True)
class Explain(Node):
    """EXPLAIN statement, or EXPLAIN query id."""

    statement: "Statement | None" = None
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class Print(Node):
    """PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]; the topic's name as written."""

    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


class QueryAction(Enum):
    """An action on running queries."""

    TERMINATE = "TERMINATE"
    PAUSE = "PAUSE"
    RESUME = "RESUME"


@dataclass(frozen=True, slots=True)
class ControlQuery(Node):
    """TERMINATE|PAUSE|RESUME query id, or ALL (no id)."""

    action: QueryAction
    query_id: str | None


@dataclass(frozen=True, slots=True)
class SetProperty(Node):
    """SET 'name' = 'value'."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UnsetProperty(Node):
    """UNSET 'name'."""

    name: str


@dataclass(frozen=True, slots=True)
class DefineVariable(Node):
    """DEFINE name = 'value'."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UndefineVariable(Node):
    """UNDEFINE name."""

    name: str


@dataclass(frozen=True, slots=True)
class AssertTopic(Node):
    """ASSERT [NOT EXISTS] TOPIC name [WITH (...)] [TIMEOUT n unit]."""

    topic: str
    exists: bool = True
    properties: Properties = ()
    timeout: Duration | None = None


@dataclass(frozen=True, slots=True)
class AssertSchema(Node):
    """ASSERT [NOT EXISTS] SCHEMA [SUBJECT name] [ID n] [TIMEOUT n unit]."""

    subject: str | None
    schema_id: int | None
    exists: bool = True
    timeout: Duration | None = None


@dataclass(frozen=True, slots=True)
class RunScript(Node):
    """RUN SCRIPT 'file'."""

    path: str


@dataclass(frozen=True, slots=True)
class AssertValues(Node):
    """ASSERT VALUES source [(columns)] VALUES (...): the next record; only in tests."""

    source: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AssertTombstone(Node):
    """ASSERT NULL VALUES source [(columns)] KEY (...): the next record is a tombstone; in tests."""

    source: str
    columns: tuple[str, ...]
    key: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AssertSource(Node):
    """ASSERT STREAM|TABLE name (columns) WITH (...): compares a source; only in tests."""

    created: CreateSource


Statement = (
    CreateSource
    | CreateAsSelect
    | InsertSelect
    | InsertValues
    | Select
    | AlterSource
    | AlterSystem
    | DropSource
    | CreateType
    | DropType
    | CreateConnector
    | DropConnector
    | Show
    | DescribeSource
    | DescribeSources
    | DescribeFunction
    | DescribeConnector
    | Explain
    | Print
    | ControlQuery
    | SetProperty
    | UnsetProperty
    | DefineVariable
    | UndefineVariable
    | AssertTopic
    | AssertSchema
    | RunScript
    | AssertValues
    | AssertTombstone
    | AssertSource
)
