"""Logged plans: changes of commands as JSON, for the command log, and back.

    {"message": "Created query with ID CSAS_BIG_1",
     "source": {"@": "SourceInfo", ...},        the stream or table that the command creates
     "origins": ["ORDERS"],                     the sources from which it is created
     "query": {"id": "CSAS_BIG_1", "plan": {"@": "Sink", ...}, "sources": ["ORDERS"], ...},
     "dropped": {"@": "SourceInfo", ...}, "deleteTopic": true,
     "ended": [...], "paused": [...], "resumed": [...],
     "type": ["ADDRESS", {"type": "STRUCT<...>"}], "droppedType": "ADDRESS",
     "setting": ["name", "value"]}

Empty members are omitted. The plans are described in planner/plan_json.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sql.catalog import SourceInfo
from sql.command_log import Command
from sql.datatypes import DataType
from sql.engine.changes import QueryInfo, StateChange
from sql.engine.topics import TopicShape
from sql.errors import SqlError, StatementFailed
from sql.functions.registry import FunctionRegistry, Overload
from sql.planner import PlannedQuery
from sql.planner.plan_json import Json, from_json, missing_function, plan_from_json, to_json
from sql.schema import Schema
from sql.syntax.queries import EmitClause

V = TypeVar("V")


def change_to_json(change: StateChange) -> dict[str, Json]:
    """A change as JSON values."""
    try:
        return {name: each for name, each in _members(change).items() if each not in EMPTY}
    except (RecursionError, AssertionError) as error:
        raise StatementFailed(
            f"the plan of the statement cannot be logged: {error!r}",
            hint="compute parts of it in an earlier query",
        ) from error


EMPTY: tuple[object, ...] = (None, [], "", False)


def _members(change: StateChange) -> dict[str, Json]:
    query = change.query
    return {
        "message": change.message,
        "source": to_json(change.made),
        "origins": to_json(change.origins),
        "query": None if query is None else _query_to_json(query, change.made),
        "dropped": to_json(change.dropped),
        "deleteTopic": change.delete_topic,
        "ended": to_json(change.ended),
        "paused": to_json(change.paused),
        "resumed": to_json(change.resumed),
        "type": to_json(change.new_type),
        "droppedType": change.dropped_type,
        "setting": to_json(change.setting),
    }


def _query_to_json(query: QueryInfo, made: SourceInfo | None) -> Json:
    planned = query.planned
    is_made = planned.sink is not None and planned.sink == made
    found = {
        "id": query.id,
        "plan": to_json(planned.plan),
        "schema": to_json(planned.schema),
        "isTable": planned.is_table,
        "sources": to_json(planned.sources),
        "writesSource": is_made,
        "sink": None if is_made else to_json(planned.sink),
        "createsSink": planned.creates_sink,
        "queryId": planned.query_id,
        "emit": to_json(planned.emit),
        "rules": to_json(planned.rules),
    }
    return {name: each for name, each in found.items() if each not in EMPTY}


def change_of(command: Command, functions: FunctionRegistry) -> StateChange:
    """The change of a command with a plan; SqlError if it cannot be read.

    A query that needs a missing function is included, but cannot run.
    """
    assert command.plan is not None, "commands of version 1 have none"
    reader = _DocumentReader(command.plan, functions)
    made = reader.member("source", SourceInfo)
    new_type = reader.names("type")
    setting = reader.names("setting")
    return StateChange(
        command.id,
        str(command.plan.get("message", "")),
        made=made,
        origins=reader.names("origins"),
        dropped=reader.member("dropped", SourceInfo),
        delete_topic=bool(command.plan.get("deleteTopic")),
        query=_query_of(command, reader, made),
        ended=reader.names("ended"),
        paused=reader.names("paused"),
        resumed=reader.names("resumed"),
        new_type=None if not new_type else _new_type(new_type),
        dropped_type=reader.member("droppedType", str),
        setting=None if not setting else (str(setting[0]), str(setting[1])),
    )


def _new_type(given: tuple[object, ...]) -> tuple[str, DataType]:
    match given:
        case (str(name), type_) if isinstance(type_, DataType):
            return name, type_
    raise SqlError(f"a plan cannot be read: {given!r} is not a type")


def _query_of(
    command: Command, outer: "_DocumentReader", made: SourceInfo | None
) -> QueryInfo | None:
    given = outer.document.get("query")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise SqlError("a plan cannot be read: its query is not an object")
    reader = _DocumentReader(given, outer.functions)
    missing: list[str] = []

    def note_missing(name: str, takes: Sequence[str], kind: str) -> Overload:
        missing.append(f"{name}({', '.join(takes)})")
        return missing_function(name, takes, kind)

    plan = plan_from_json(given.get("plan"), outer.functions, note_missing)
    schema = reader.member("schema", Schema)
    query_id = reader.member("id", str)
    if schema is None or query_id is None:
        raise SqlError("a plan cannot be read: its query has no id or no schema")
    planned = PlannedQuery(
        plan,
        schema,
        bool(given.get("isTable")),
        reader.names("sources"),
        sink=made if given.get("writesSource") else reader.member("sink", SourceInfo),
        creates_sink=bool(given.get("createsSink")),
        query_id=reader.member("queryId", str),
        emit=reader.member("emit", EmitClause) or EmitClause.CHANGES,
        rules=reader.names("rules"),
    )
    return QueryInfo(
        query_id,
        command.statement,
        planned,
        command.properties,
        command.original,
        _unavailable(missing),
    )


def _unavailable(missing: Sequence[str]) -> str:
    names = ", ".join(dict.fromkeys(missing))
    return f"the query needs functions that are not available: {names}" if names else ""


class _DocumentReader:
    """Reads the members of a document."""

    def __init__(self, document: Mapping[str, Json], functions: FunctionRegistry) -> None:
        self.document = document
        self.functions = functions

    def member(self, name: str, kind: type[V]) -> V | None:
        """A member of a kind; None if it was omitted."""
        result = from_json(self.document.get(name), self.functions)
        if result is not None and not isinstance(result, kind):
            raise SqlError(f'a plan cannot be read: "{name}" is not a {kind.__name__}')
        return result

    # All members of these lists are strings, or types.
    def names(self, name: str) -> tuple[str, ...]:
        """A list; empty if it was omitted."""
        return self.member(name, tuple) or ()


def sized(change: StateChange, shape: TopicShape | None) -> StateChange:
    """A change whose new source has the current size of its topic, if it exists."""
    if change.made is None or shape is None:
        return change
    made = replace(change.made, partitions=shape.partitions, replicas=shape.replicas)
    query = change.query
    if query is not None and query.planned.sink is not None and query.planned.sink == change.made:
        query = replace(query, planned=replace(query.planned, sink=made))
    return replace(change, made=made, query=query)
