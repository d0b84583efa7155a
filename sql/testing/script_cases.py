"""Script cases: executes a script statement by statement; ASSERT checks the output so far."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sql.analyse.sources import definitions_schema
from sql.backends.native.rows import key_serde, value_serde
from sql.catalog import SourceInfo, TimestampColumn
from sql.datatypes import Column
from sql.errors import SqlError, StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.parse import ParsedStatement, parse
from sql.properties import read_source_properties
from sql.schema import ROWTIME
from sql.syntax import statements as st
from sql.testing.cases import Case
from sql.testing.engine import TestEngine
from sql.testing.failures import CaseFailed
from sql.testing.inserting import evaluated
from sql.testing.query_cases import check_error
from sql.testing.query_runs import QueryRun, TopicRecord


def run_script_case(case: Case, functions: FunctionRegistry) -> None:
    """Run a script; with an expected error, a statement must fail with it."""
    expected: Mapping[str, Any] | None = case.data.get("expected_error")
    script = Script(functions, case.folders)
    text = ""
    try:
        for parsed in parse(case.data["sql"], testing=True):
            text = parsed.text
            script.execute(parsed)
    except SqlError as error:
        if expected is None:
            raise
        check_error(error, expected, text)
        return
    finally:
        script.close()
    if expected is not None:
        raise CaseFailed(f"no statement fails; expected: {expected['message']}")


class Script:
    """An engine whose queries run immediately, and the records that ASSERT has read."""

    def __init__(self, functions: FunctionRegistry, folders: Sequence[Path] = ()) -> None:
        """`folders` are where RUN SCRIPT looks for files."""
        self._folders = folders
        self._engine = TestEngine(functions, {})
        self._runs: dict[str, tuple[object, QueryRun]] = {}
        self._read: dict[str, int] = {}

    def execute(self, parsed: ParsedStatement) -> None:
        """Execute one statement, and let the queries process its records."""
        statement = parsed.statement
        match statement:
            case st.RunScript():
                for each in parse(_script(statement.path, self._folders), testing=True):
                    self.execute(each)
            case st.AssertValues():
                self._assert_values(statement)
            case st.AssertTombstone():
                self._assert_tombstone(statement)
            case st.AssertSource():
                self._assert_source(statement.created)
            case st.InsertValues():
                before = {name: len(each.records) for name, each in self._engine.topics.items()}
                self._engine.execute(parsed)
                written = [
                    (name, record)
                    for name, topic in self._engine.topics.items()
                    for record in topic.records[before.get(name, 0) :]
                ]
                for name, record in written:
                    self._propagate(name, record)
            case _:
                self._engine.execute(parsed)
                self._open_queries()

    def close(self) -> None:
        """Close all queries."""
        for _, run in self._runs.values():
            run.close()

    def _open_queries(self) -> None:
        """Open new queries; a query that replaces another continues with its state."""
        for query_id, query in self._engine.queries.items():
            known = self._runs.get(query_id)
            if known is not None and known[0] is query:
                continue
            run = QueryRun(query_id, query.plan, self._engine.registry, query.settings)
            if known is not None:
                run.take_over(known[1])
                known[1].close()
            self._runs[query_id] = (query, run)
        for query_id in [each for each in self._runs if each not in self._engine.queries]:
            self._runs.pop(query_id)[1].close()

    def _propagate(self, topic: str, record: TopicRecord) -> None:
        """Feed a record to all queries that read its topic, depth first."""
        for _, run in list(self._runs.values()):
            if topic in run.source_topics:
                for result in run.feed(topic, record):
                    self._engine.append(run.sink_topic, result)
                    self._propagate(run.sink_topic, result)

    def _source(self, name: str) -> SourceInfo:
        source = self._engine.catalog.sources.get(name)
        if source is None:
            raise StatementFailed(f"Source `{name}` does not exist.")
        return source

    def _next(self, source: SourceInfo) -> TopicRecord:
        at = self._read.get(source.topic, 0)
        records = self._engine.topic(source.topic).records
        if at >= len(records):
            raise StatementFailed(f"Expected another record (ran out of records) for {source.name}")
        self._read[source.topic] = at + 1
        return records[at]

    def _assert_values(self, statement: st.AssertValues) -> None:
        source = self._source(statement.source)
        schema = source.schema
        known = {each.name: each for each in (ROWTIME, *schema.key, *schema.value)}
        names = statement.columns or tuple(each.name for each in (*schema.key, *schema.value))
        columns = _columns(names, known, source)
        wanted = evaluated(statement.values, columns, self._engine.catalog, self._engine.functions)
        record = self._next(source)
        actual = self._row(source, record)
        for column, value in zip(columns, wanted, strict=True):
            if actual.get(column.name) != value:
                raise StatementFailed(
                    "Expected record does not match actual. "
                    f"Expected {dict(zip(names, wanted, strict=True))}, got {actual}"
                )

    def _assert_tombstone(self, statement: st.AssertTombstone) -> None:
        source = self._source(statement.source)
        names = statement.columns or tuple(each.name for each in source.schema.key)
        columns = _columns(names, {each.name: each for each in source.schema.key}, source)
        wanted = evaluated(statement.key, columns, self._engine.catalog, self._engine.functions)
        record = self._next(source)
        actual = self._row(source, record)
        if record.value is not None or any(
            actual.get(column.name) != value for column, value in zip(columns, wanted, strict=True)
        ):
            raise StatementFailed(
                f"Expected record does not match actual. Expected a tombstone of {wanted}, "
                f"got {actual}"
            )

    def _row(self, source: SourceInfo, record: TopicRecord) -> dict[str, object]:
        registry, schema = self._engine.registry, source.schema
        keys = key_serde(source.key_format, schema.key, registry, source.window)
        key = keys.deserialize(source.topic, record.key)
        plain = key if source.window is None or key is None else key.key
        value = value_serde(source.value_format, schema.value, registry).deserialize(
            source.topic, record.value
        )
        result: dict[str, object] = {ROWTIME.name: record.timestamp_ms}
        result.update(_named(schema.key, plain))
        result.update(_named(schema.value, value))
        return result

    def _assert_source(self, created: st.CreateSource) -> None:
        source = self._source(created.name)
        if source.kind is not created.kind:
            raise StatementFailed(
                f"Expected type does not match actual for source {source.name}. "
                f"Expected: {created.kind.value}, actual: {source.kind.value}"
            )
        wanted = definitions_schema(created.columns, self._engine.catalog.types)
        if created.columns and str(wanted) != str(source.schema):
            raise StatementFailed(
                f"Expected schema does not match actual for source {source.name}. "
                f"Expected: {wanted}, actual: {source.schema}"
            )
        clause = read_source_properties(created.properties)
        for what, expected, actual in (
            ("kafka topic", clause.topic, source.topic),
            ("key format", clause.key_format, source.key_format.name),
            ("value format", clause.value_format, source.value_format.name),
            ("window", clause.window, source.window),
            *_times(clause.timestamp, source.timestamp),
            ("value serde features", clause.wrap_single_value, source.value_format.wrapped),
        ):
            if expected is not None and expected != actual:
                raise StatementFailed(
                    f"Expected {what} does not match actual for source {source.name}. "
                    f"Expected: {expected}, actual: {actual}"
                )


def _times(
    expected: TimestampColumn | None, actual: TimestampColumn | None
) -> Iterator[tuple[str, object, object]]:
    if expected is not None:
        yield "timestamp column", expected.name, None if actual is None else actual.name
        yield "timestamp format", expected.pattern, None if actual is None else actual.pattern


def _columns(
    names: tuple[str, ...], known: Mapping[str, Column], source: SourceInfo
) -> list[Column]:
    for name in names:
        if name not in known:
            raise StatementFailed(f"Column name `{name}` does not exist in {source.name}")
    return [known[name] for name in names]


def _named(columns: tuple[Column, ...], row: object) -> dict[str, object]:
    if row is None:
        return {each.name: None for each in columns}
    assert isinstance(row, tuple)
    return dict(zip((each.name for each in columns), row, strict=True))


def _script(path: str, folders: Sequence[Path]) -> str:
    """The text of a script; its path is relative to the folders."""
    for folder in folders:
        found = (folder / path.lstrip("/")).resolve()
        if found.is_relative_to(folder.resolve()) and found.is_file():
            return found.read_text(encoding="utf-8")
    shown = ", ".join(f'"{each}"' for each in folders) or "no folder"
    raise StatementFailed(f"Could not find script {path}", hint=f"looked in {shown}")
