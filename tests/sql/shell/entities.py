"""One entity of each kind, with everything in it that is shown."""

from sql.engine import entities as en
from sql.engine.messages import entity_json
from sql.shell.session import EntityJson

STRING = en.FieldSchema("STRING")
FIELDS = (
    en.FieldInfo("ID", STRING, "KEY"),
    en.FieldInfo("TAGS", en.FieldSchema("ARRAY", None, STRING)),
    en.FieldInfo("COUNTS", en.FieldSchema("MAP", None, en.FieldSchema("BIGINT"))),
    en.FieldInfo("PLACE", en.FieldSchema("STRUCT", (en.FieldInfo("X", en.FieldSchema("INT")),))),
    en.FieldInfo("PRICE", en.FieldSchema("DECIMAL", parameters={"precision": 9, "scale": 2})),
    en.FieldInfo("TRACE", en.FieldSchema("BYTES"), "HEADER", "trace"),
)
QUERY = en.RunningQuery(
    "CREATE TABLE totals AS SELECT id, COUNT(*) FROM orders GROUP BY id;",
    ("TOTALS",),
    ("TOTALS",),
    "CTAS_TOTALS_3",
    {"RUNNING": 1},
    "PERSISTENT",
    "RUNNING",
)
OFFSETS = en.GroupOffsets(
    "group", (en.TopicOffsets("orders", (en.PartitionOffsets(0, 0, 12, 10),)),)
)


def source(*, extended: bool) -> en.SourceDetails:
    """A table with columns of all shapes."""
    return en.SourceDetails(
        name="TOTALS",
        window_type="TUMBLING",
        read_queries=(),
        write_queries=(QUERY,),
        fields=FIELDS,
        type="TABLE",
        timestamp="",
        statistics="",
        error_stats="",
        extended=extended,
        key_format="KAFKA",
        value_format="JSON",
        topic="TOTALS",
        partitions=4 if extended else 0,
        replication=1 if extended else 0,
        statement="CREATE TABLE totals AS\n  SELECT 1;",
        query_offset_summaries=(OFFSETS,) if extended else (),
    )


DETAILS = en.QueryDetails(
    id="CTAS_TOTALS_3",
    statement_text="CREATE TABLE totals AS SELECT 1;",
    window_type=None,
    fields=FIELDS[:1],
    sources=("ORDERS",),
    sinks=("TOTALS",),
    topology="Topologies:\n   Sub-topology: 0",
    execution_plan=" > [ SINK ] | Schema: ID STRING KEY",
    overridden_properties={"auto.offset.reset": "earliest"},
    ksql_host_query_status={"here": "ERROR"},
    query_type="PERSISTENT",
    query_errors=(en.QueryFailure(1, "the disk is full", "SYSTEM"),),
    state="ERROR",
)
SUMMARY = en.SourceSummary("STREAM", "ORDERS", "orders", "KAFKA", "JSON", False)
FUNCTION = en.FunctionDescription(
    "s",
    "LPAD",
    "Fills a text on its left.",
    "Millstream",
    "",
    "internal",
    (
        en.FunctionVariation(
            (
                en.ArgumentInfo("text", "STRING", "", False),
                en.ArgumentInfo("more", "STRING", "", True),
            ),
            "STRING",
            "",
        ),
    ),
    "SCALAR",
)
CONNECTOR_STATUS = {
    "name": "files",
    "type": "source",
    "connector": {"state": "RUNNING", "worker_id": "here:8083"},
    "tasks": [{"id": 0, "state": "FAILED", "trace": "no such file"}],
}

KINDS: dict[str, en.Entity] = {
    "status": en.CurrentStatus(
        "s", "stream/`A`/create", en.CommandStatus("SUCCESS", "Stream created"), 1, ("old",)
    ),
    "failed_status": en.CurrentStatus(
        "s", "stream/`A`/create", en.CommandStatus("ERROR", "topic is gone"), 1
    ),
    "warning": en.WarningEntity("s", "A stream ORDERS exists already."),
    "properties": en.PropertiesList(
        "s", (en.Property("ksql.service.id", "KSQL", "default_", False, "SERVER"),), (), ()
    ),
    "streams": en.StreamsList("s", (SUMMARY,)),
    "no_streams": en.StreamsList("s", ()),
    "tables": en.TablesList(
        "s", (en.SourceSummary("TABLE", "TOTALS", "TOTALS", "KAFKA", "AVRO", True),)
    ),
    "queries": en.QueriesList("s", (QUERY,)),
    "topics": en.TopicsList("s", (en.TopicSummary("orders", (1, 1, 1)),)),
    "extended_topics": en.ExtendedTopicsList(
        "s", (en.ExtendedTopicSummary("orders", (1, 1), 4, 2),)
    ),
    "source": en.SourceDescription("s", source(extended=False)),
    "extended_source": en.SourceDescription("s", source(extended=True)),
    "sources": en.SourceDescriptions("s", (source(extended=False),)),
    "no_sources": en.SourceDescriptions("s", ()),
    "query": en.QueryDescription("s", DETAILS),
    "query_descriptions": en.QueryDescriptions("s", (DETAILS,)),
    "no_query_descriptions": en.QueryDescriptions("s", ()),
    "functions": en.FunctionsList("s", (en.FunctionSummary("LPAD", "SCALAR", "STRING"),)),
    "function": FUNCTION,
    "types": en.TypesList("s", {"ADDRESS": FIELDS[3].schema}),
    "no_types": en.TypesList("s", {}),
    "variables": en.VariablesList("s", (en.Variable("REGION", "eu [bold] \x1b[31m"),)),
    "terminated": en.TerminatedQuery("s", "transient_1", True),
    "asserted_topic": en.AssertedTopic("s", "orders", False),
    "asserted_schema": en.AssertedSchema("s", "orders-value", 3, True),
    "created_connector": en.CreatedConnector("s", en.ConnectorInfo("files", {})),
    "dropped_connector": en.DroppedConnector("s", "files"),
    "connectors": en.ConnectorsList(
        "s", (en.ConnectorSummary("files", "source", "FileSource", "RUNNING (1/1)"),)
    ),
    "plugins": en.PluginsList("s", (en.PluginSummary("FileSource", "source", "1"),)),
    "connector": en.ConnectorDescription("s", "FileSource", CONNECTOR_STATUS, (), ("lines",)),
}
ENTITIES: dict[str, EntityJson] = {name: entity_json(each) for name, each in KINDS.items()}
ENTITIES["unknown"] = {"@type": "of_tomorrow", "value": 1}
