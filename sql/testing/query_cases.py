"""Query cases: executes statements, feeds inputs query by query, and compares outputs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from broker.errors import MillstreamError
from sql.catalog import SourceInfo
from sql.errors import SqlError, StatementFailed, SyntaxFailed
from sql.functions.registry import FunctionRegistry
from sql.parse import ParsedStatement, parse
from sql.rewrite import RULES, Rule
from sql.syntax.queries import WindowKind
from sql.testing.cases import Case
from sql.testing.comparing import KeyWindow, TypedRecord, difference, headers_of
from sql.testing.engine import TestEngine
from sql.testing.failures import CaseFailed
from sql.testing.post_checks import check_post
from sql.testing.query_runs import QueryRun, TopicRecord
from sql.testing.records import TopicSide, decode, encode
from sql.testing.topic_setup import CaseEnvironment, set_up_topics

TIME_BYTES = 8
STATEMENT, PROCESSING = "statement", "processing"
# The equivalents of ksqlDB's exceptions, by their names without a package; a syntax error is one of
# its statement errors.
ERROR_CLASSES: Mapping[str, tuple[type[SqlError], ...]] = {
    "ParseFailedException": (SyntaxFailed,),
    "KsqlStatementException": (StatementFailed, SyntaxFailed),
    "KsqlException": (StatementFailed, SyntaxFailed),
}


def run_query_case(case: Case, functions: FunctionRegistry) -> None:
    """Run a case; CaseFailed, or any other error, if it does not pass."""
    engine = executed(case, functions)
    if engine is None:
        return
    try:
        internal = process(engine, case.data)
    except MillstreamError as error:
        check_failure(case.data, error)
        return
    check_results(engine, case.data, internal)


def executed(
    case: Case, functions: FunctionRegistry, rules: Sequence[Rule] = RULES
) -> TestEngine | None:
    """The engine after all statements of a case; None if one fails as the case expects.

    `rules` rewrite the plans.
    """
    data = case.data
    expected: Mapping[str, Any] = data.get("expected_error") or {}
    engine = TestEngine(functions, data.get("properties") or {}, rules)
    fails_last = phase_of_failure(data) == STATEMENT
    try:
        script = parse("\n".join(data["statements"]))
        set_up_topics(engine, data, [each.statement for each in script])
        _execute(engine, script, fails_last=fails_last)
    except SqlError as error:
        if not fails_last:
            raise
        check_error(error, expected, str(data["statements"][-1]))
        return None
    if fails_last:
        raise CaseFailed(f"no statement fails; expected: {expected['message']}")
    return engine


def phase_of_failure(data: Mapping[str, Any]) -> str | None:
    """Whether a case fails at a statement or when records are processed; None if never."""
    expected = data.get("expected_error")
    return str(expected.get("phase", STATEMENT)) if expected else None


def check_failure(data: Mapping[str, Any], error: Exception) -> None:
    """Check whether a case expects the error of a record; otherwise raise it again."""
    if phase_of_failure(data) != PROCESSING:
        raise error
    check_processing_error(error, data["expected_error"])


def check_results(engine: TestEngine, data: Mapping[str, Any], internal: list[str]) -> None:
    """Check the results after all records of a case are processed."""
    if phase_of_failure(data) == PROCESSING:
        raise CaseFailed(f"no record fails; expected: {data['expected_error']['message']}")
    _compare(engine, data)
    check_post(engine, data.get("post"), internal)


def _execute(engine: TestEngine, script: list[ParsedStatement], *, fails_last: bool) -> None:
    """Execute all statements; those before an expected failure must succeed."""
    for index, parsed in enumerate(script):
        try:
            engine.execute(parsed)
        except SqlError as error:
            if fails_last and index < len(script) - 1:
                raise CaseFailed(f"an earlier statement fails: {error.message}") from error
            raise


def check_error(error: SqlError, expected: Mapping[str, Any], statement: str) -> None:
    """Check a statement's error: its message must contain the expected one.

    A correct message with another class is a separate failure.
    """
    text = f"{error.message}\nStatement: {statement}"
    cause = expected.get("cause_message")
    if (expected.get("message") or "") not in text:
        raise CaseFailed(
            f"fails as expected, with another message: {error.message!r}, "
            f"expected: {expected['message']!r}"
        )
    if cause is not None and cause not in f"{text}\n{error.__cause__}":
        raise CaseFailed(f"fails as expected, with another cause: {error.message!r}")
    wanted = str(expected.get("type") or "")
    classes = ERROR_CLASSES.get(wanted.rsplit(".", 1)[-1])
    if classes is not None and not isinstance(error, classes):
        raise CaseFailed(
            f"fails with the expected message, as another class: {type(error).__name__}, "
            f"expected: {wanted}"
        )


def check_processing_error(error: Exception, expected: Mapping[str, Any]) -> None:
    """Check whether a record's error, or its cause, is the expected one."""
    wanted = expected.get("cause_message")
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__
    if wanted is not None and not any(wanted in text for text in texts):
        raise CaseFailed(f"fails as expected, with another cause: {error}, expected: {wanted}")


def process(engine: TestEngine, data: Mapping[str, Any]) -> list[str]:
    """Feed all queries, one after the other; returns the names of the internal topics."""
    given = encoded_inputs(engine, data)
    for topic, record in given:
        engine.append(topic, record)
    fed = {topic for topic, _ in given}
    internal: list[str] = []
    with ExitStack() as opened:
        for query in engine.queries.values():
            run = opened.enter_context(
                QueryRun(query.query_id, query.plan, engine.registry, query.settings)
            )
            internal.extend(run.internal_topics)
            for topic, record in list(records_for(engine, run.source_topics, fed, given)):
                for result in run.feed(topic, record):
                    engine.append(run.sink_topic, result)
    return internal


def encoded_inputs(
    engine: CaseEnvironment, data: Mapping[str, Any]
) -> list[tuple[str, TopicRecord]]:
    """The input records of a case as bytes, with their topics."""
    return [(each["topic"], _encoded(engine, each)) for each in data.get("inputs") or ()]


def records_for(
    engine: TestEngine,
    sources: Sequence[str],
    fed: set[str],
    given: Iterable[tuple[str, TopicRecord]],
) -> Iterator[tuple[str, TopicRecord]]:
    """The records that a query reads: the case's inputs, then those of all its other topics."""
    yield from (each for each in given if each[0] in sources)
    for topic in sources:
        if topic not in fed:
            yield from ((topic, record) for record in engine.topic(topic).records)


def source_of_topic(engine: CaseEnvironment, topic: str) -> SourceInfo | None:
    """The stream or table of a topic; the last one if there are several."""
    found = [each for each in engine.catalog.sources.values() if each.topic == topic]
    return found[-1] if found else None


def _sides(engine: CaseEnvironment, topic: str) -> tuple[TopicSide, TopicSide, SourceInfo]:
    source = source_of_topic(engine, topic)
    if source is None:
        raise CaseFailed(f'no stream or table has topic "{topic}"')
    key = TopicSide(topic, source.key_format, source.schema.key, is_key=True)
    value = TopicSide(topic, source.value_format, source.schema.value, is_key=False)
    return key, value, source


def _encoded(engine: CaseEnvironment, given: Mapping[str, Any]) -> TopicRecord:
    key_side, value_side, _ = _sides(engine, given["topic"])
    key = encode(key_side, given.get("key"), engine.registry)
    window = given.get("window")
    if window is not None:
        start, end = int(window["start"]), int(window["end"])
        times = (end, start) if window["type"].lower() == "session" else (start,)
        key = (key or b"") + b"".join(each.to_bytes(TIME_BYTES, "big") for each in times)
    return TopicRecord(
        key,
        encode(value_side, given.get("value"), engine.registry),
        int(given.get("timestamp") or 0),
        headers_of(given),
    )


def typed_record(engine: CaseEnvironment, topic: str, record: TopicRecord) -> TypedRecord:
    """A record of a topic, with plain Python values."""
    key_side, value_side, source = _sides(engine, topic)
    key, window = record.key, None
    if source.window is not None and key is not None:
        if source.window.kind is WindowKind.SESSION:
            end = int.from_bytes(key[-16:-8], "big")
            start = int.from_bytes(key[-8:], "big")
            key, window = key[:-16], KeyWindow(start, end, "session")
        else:
            start = int.from_bytes(key[-8:], "big")
            size_ms = source.window.size_ms or 0
            key, window = key[:-8], KeyWindow(start, start + size_ms, "time")
    return TypedRecord(
        decode(key_side, key, engine.registry),
        decode(value_side, record.value, engine.registry),
        record.timestamp_ms,
        window,
        tuple(record.headers),
    )


def _compare(engine: TestEngine, data: Mapping[str, Any]) -> None:
    expected: dict[str, list[Mapping[str, Any]]] = {}
    for each in data.get("outputs") or ():
        expected.setdefault(each["topic"], []).append(each)
    no_inputs = not data.get("inputs")
    for topic, wanted in expected.items():
        actual = [typed_record(engine, topic, each) for each in engine.topic(topic).records]
        for number, (found, record) in enumerate(zip(actual, wanted, strict=False)):
            any_time = no_inputs and record.get("timestamp") == 0
            differs = difference(found, record, any_time=any_time)
            if differs is not None:
                raise CaseFailed(f'topic "{topic}", record {number}: {differs}')
        if len(actual) != len(wanted):
            more = actual[len(wanted) : len(wanted) + 1] or wanted[len(actual) : len(actual) + 1]
            raise CaseFailed(
                f'topic "{topic}" has {len(actual)} records, expected {len(wanted)}; '
                f"the first that differs: {more}"
            )
