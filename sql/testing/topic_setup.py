"""Creates the topics and schemas of a case before its statements run."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from broker.serde.schema.schema import Reference, Schema, SchemaKind
from sql.analyse.sources import NoSchemas, SourceAnalyser
from sql.catalog import Catalog
from sql.engine.registered_schemas import register_schemas
from sql.errors import SqlError
from sql.syntax.statements import CreateSource, Statement
from sql.testing.memory_registry import MemoryRegistry

KINDS = {
    "AVRO": SchemaKind.AVRO,
    "JSON": SchemaKind.JSON,
    "JSON_SR": SchemaKind.JSON,
    "PROTOBUF": SchemaKind.PROTOBUF,
}


# Referenced schemas have ids that no statement uses.
FIRST_REFERENCE_ID = 1_000_000


class CaseEnvironment(Protocol):
    """The environment of a case: its topics and schemas are created there."""

    @property
    def registry(self) -> MemoryRegistry:
        """The schema registry."""
        ...

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of all statements."""
        ...

    @property
    def catalog(self) -> Catalog:
        """The streams and tables."""
        ...

    def topic(self, name: str, partitions: int = 4) -> object:
        """Create a topic if it does not exist."""
        ...


def set_up_topics(
    engine: CaseEnvironment, data: Mapping[str, Any], statements: Sequence[Statement]
) -> None:
    """Create the topics of a case, and register the schemas of columns, then those of topics."""
    given = {topic["name"] for topic in data.get("topics") or ()}
    for statement in statements:
        if isinstance(statement, CreateSource) and statement.columns:
            _register_columns(engine, statement, given)
    for topic in data.get("topics") or ():
        engine.topic(topic["name"], topic.get("partitions") or 1)
        for side in ("key", "value"):
            if topic.get(f"{side}_schema") is not None:
                _register(engine, topic, side)
    for name in ("inputs", "outputs"):
        for record in data.get(name) or ():
            engine.topic(record["topic"])


def _register_columns(
    engine: CaseEnvironment, statement: CreateSource, given: Collection[str]
) -> None:
    """Register schemas of a statement's columns; if this fails, the statement fails, too."""
    analyser = SourceAnalyser(Catalog(), engine.settings, NoSchemas())
    try:
        info = analyser.create(statement)
    except SqlError:
        return
    if info is not None and info.topic not in given:
        register_schemas(info, engine.registry)


def _register(engine: CaseEnvironment, topic: Mapping[str, Any], side: str) -> None:
    kind = KINDS[(topic.get(f"{side}_format") or "AVRO").upper()]
    references: list[Reference] = []
    for each in topic.get(f"{side}_schema_references") or ():
        schema = Schema(_text(each["schema"]), KINDS[each["format"].upper()])
        engine.registry.register_as(each["name"], schema, FIRST_REFERENCE_ID + len(references))
        references.append(Reference(each["name"], each["name"], 1))
    schema = Schema(_text(topic[f"{side}_schema"]), kind, tuple(references))
    subject = f"{topic['name']}-{side}"
    schema_id = topic.get(f"{side}_schema_id")
    if schema_id is None:
        engine.registry.register(subject, schema)
    else:
        engine.registry.register_as(subject, schema, int(schema_id))


def _text(schema: object) -> str:
    """The text of a schema: Protobuf unchanged, others as JSON."""
    if isinstance(schema, str) and ("syntax" in schema or "message" in schema):
        return schema
    return json.dumps(schema, default=float)
