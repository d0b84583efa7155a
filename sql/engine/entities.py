"""Entities: results of statements as plain values, which the REST API converts to JSON."""

from collections.abc import Mapping
from dataclasses import dataclass

from sql.engine.spark_progress import SparkProgress


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """The type of a column, in the form of the REST API."""

    type: str
    fields: "tuple[FieldInfo, ...] | None" = None
    member_schema: "FieldSchema | None" = None
    parameters: Mapping[str, int] | None = None  # precision and scale of a decimal


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A column; `type` is "KEY" or "HEADER", or None of a value."""

    name: str
    schema: FieldSchema
    type: str | None = None
    header_key: str | None = None


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """The status of a command."""

    status: str
    message: str
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class CurrentStatus:
    """A command that was logged and executed."""

    statement_text: str
    command_id: str
    command_status: CommandStatus
    command_sequence_number: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WarningEntity:
    """The statement had no effect, which is not an error: IF NOT EXISTS, IF EXISTS."""

    statement_text: str
    message: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """A setting; `scope` is "KSQL" or "EXTERNAL", `level` "SERVER" or "QUERY"."""

    name: str
    scope: str
    value: str | None
    editable: bool
    level: str


@dataclass(frozen=True, slots=True)
class PropertiesList:
    """SHOW PROPERTIES."""

    statement_text: str
    properties: tuple[Property, ...]
    overwritten_properties: tuple[str, ...]
    default_properties: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A stream or table in a list."""

    type: str
    name: str
    topic: str
    key_format: str
    value_format: str
    is_windowed: bool


@dataclass(frozen=True, slots=True)
class StreamsList:
    """SHOW STREAMS."""

    statement_text: str
    streams: tuple[SourceSummary, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TablesList:
    """SHOW TABLES."""

    statement_text: str
    tables: tuple[SourceSummary, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A query in a list."""

    query_string: str
    sinks: tuple[str, ...]
    sink_kafka_topics: tuple[str, ...]
    id: str
    status_count: Mapping[str, int]
    query_type: str
    state: str
    progress: SparkProgress | None = None  # of queries on Spark; not in ksqlDB


@dataclass(frozen=True, slots=True)
class QueriesList:
    """SHOW QUERIES."""

    statement_text: str
    queries: tuple[RunningQuery, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in a list: the number of replicas of each partition."""

    name: str
    replica_info: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicsList:
    """SHOW TOPICS."""

    statement_text: str
    topics: tuple[TopicSummary, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtendedTopicSummary:
    """A topic in a list, with its consumers."""

    name: str
    replica_info: tuple[int, ...]
    consumer_count: int
    consumer_group_count: int


@dataclass(frozen=True, slots=True)
class ExtendedTopicsList:
    """SHOW TOPICS EXTENDED."""

    statement_text: str
    topics: tuple[ExtendedTopicSummary, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """The position of a group in a partition."""

    partition: int
    log_start_offset: int
    log_end_offset: int
    consumer_offset: int


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The positions of a group in a topic."""

    kafka_topic: str
    offsets: tuple[PartitionOffsets, ...]


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """The positions of a query in its topics."""

    group_id: str
    topic_summaries: tuple[TopicOffsets, ...]


@dataclass(frozen=True, slots=True)
class HostInfo:
    """The address of a server."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class HostStatistic:
    """A statistic of a topic at a server, and when it last changed."""

    host: HostInfo
    name: str
    value: float
    timestamp: int


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """The details of a stream or table; statistics and offsets only when EXTENDED."""

    name: str
    window_type: str | None
    read_queries: tuple[RunningQuery, ...]
    write_queries: tuple[RunningQuery, ...]
    fields: tuple[FieldInfo, ...]
    type: str
    timestamp: str
    statistics: str
    error_stats: str
    extended: bool
    key_format: str
    value_format: str
    topic: str
    partitions: int
    replication: int
    statement: str
    query_offset_summaries: tuple[GroupOffsets, ...] = ()
    source_constraints: tuple[str, ...] = ()
    cluster_statistics: tuple[HostStatistic, ...] = ()
    cluster_error_stats: tuple[HostStatistic, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """DESCRIBE name."""

    statement_text: str
    source_description: SourceDetails
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceDescriptions:
    """DESCRIBE STREAMS, SHOW STREAMS EXTENDED and the like."""

    statement_text: str
    source_descriptions: tuple[SourceDetails, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """Why a query stopped."""

    timestamp: int
    error_message: str
    type: str


@dataclass(frozen=True, slots=True)
class QueryDetails:
    """The details of a query."""

    id: str
    statement_text: str
    window_type: str | None
    fields: tuple[FieldInfo, ...]
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    topology: str
    execution_plan: str
    overridden_properties: Mapping[str, object]
    ksql_host_query_status: Mapping[str, str]
    query_type: str
    query_errors: tuple[QueryFailure, ...] = ()
    tasks_metadata: tuple[object, ...] = ()
    state: str | None = None
    progress: SparkProgress | None = None


@dataclass(frozen=True, slots=True)
class QueryDescription:
    """EXPLAIN."""

    statement_text: str
    query_description: QueryDetails
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryDescriptions:
    """SHOW QUERIES EXTENDED."""

    statement_text: str
    query_descriptions: tuple[QueryDetails, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A function in a list."""

    name: str
    type: str
    category: str


@dataclass(frozen=True, slots=True)
class FunctionsList:
    """SHOW FUNCTIONS."""

    statement_text: str
    functions: tuple[FunctionSummary, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArgumentInfo:
    """A parameter of a function."""

    name: str
    type: str
    description: str
    is_variadic: bool


@dataclass(frozen=True, slots=True)
class FunctionVariation:
    """One overload of a function."""

    arguments: tuple[ArgumentInfo, ...]
    return_type: str
    description: str


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    """DESCRIBE FUNCTION."""

    statement_text: str
    name: str
    description: str
    author: str
    version: str
    path: str
    functions: tuple[FunctionVariation, ...]
    type: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypesList:
    """SHOW TYPES."""

    statement_text: str
    types: Mapping[str, FieldSchema]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the session."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class VariablesList:
    """SHOW VARIABLES."""

    statement_text: str
    variables: tuple[Variable, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TerminatedQuery:
    """TERMINATE of a query without a command."""

    statement_text: str
    query_id: str
    was_terminated: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssertedTopic:
    """ASSERT TOPIC."""

    statement_text: str
    topic_name: str
    exists: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssertedSchema:
    """ASSERT SCHEMA."""

    statement_text: str
    subject: str | None
    id: int | None
    exists: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConnectorTask:
    """One task of a connector."""

    connector: str
    task: int


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector as Connect describes it."""

    name: str
    config: Mapping[str, str]
    tasks: tuple[ConnectorTask, ...] = ()
    type: str = "unknown"


@dataclass(frozen=True, slots=True)
class CreatedConnector:
    """CREATE CONNECTOR."""

    statement_text: str
    info: ConnectorInfo
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DroppedConnector:
    """DROP CONNECTOR."""

    statement_text: str
    connector_name: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConnectorSummary:
    """A connector in a list."""

    name: str
    type: str
    class_name: str
    state: str


@dataclass(frozen=True, slots=True)
class ConnectorsList:
    """SHOW CONNECTORS."""

    statement_text: str
    connectors: tuple[ConnectorSummary, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginSummary:
    """A connector class that Connect can run."""

    class_name: str
    type: str
    version: str


@dataclass(frozen=True, slots=True)
class PluginsList:
    """SHOW CONNECTOR PLUGINS."""

    statement_text: str
    connectors_plugins: tuple[PluginSummary, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConnectorDescription:
    """DESCRIBE CONNECTOR, with the status from Connect."""

    statement_text: str
    connector_class: str
    status: Mapping[str, object]
    sources: tuple[SourceDetails, ...] = ()
    topics: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


Entity = (
    CurrentStatus
    | WarningEntity
    | PropertiesList
    | StreamsList
    | TablesList
    | QueriesList
    | TopicsList
    | ExtendedTopicsList
    | SourceDescription
    | SourceDescriptions
    | QueryDescription
    | QueryDescriptions
    | FunctionsList
    | FunctionDescription
    | TypesList
    | VariablesList
    | TerminatedQuery
    | AssertedTopic
    | AssertedSchema
    | CreatedConnector
    | DroppedConnector
    | ConnectorsList
    | PluginsList
    | ConnectorDescription
)
