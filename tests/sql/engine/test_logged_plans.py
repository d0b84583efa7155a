"""Plans in the command log: what was written once is read for good."""

import json
from pathlib import Path

import pytest

from sql.command_log import PLAN_BYTES_PLAIN, Command, CommandLogError, decode, encode
from sql.engine.changes import EngineState, Preparation, StateChange
from sql.engine.logged_plans import change_of, change_to_json
from sql.engine.registered_schemas import StatementSchemas
from sql.engine.settings import SqlConfig
from sql.functions.builtin import builtin_functions
from sql.parse import parse
from sql.planner import explain_text
from sql.testing.engine import NoTopicShapes

LOGS = sorted((Path(__file__).parents[2] / "cases" / "command_log").glob("*.json"))
STATEMENTS = """
CREATE TYPE pair AS STRUCT<a INT, b DECIMAL(5, 2)>;
CREATE STREAM s (id INT KEY, a BIGINT, p pair, l ARRAY<STRING>, h BYTES HEADER('x'))
    WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=2, TIMESTAMP='a');
CREATE STREAM r (id INT KEY, a BIGINT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='AVRO', PARTITIONS=2);
CREATE TABLE t (id INT PRIMARY KEY, c BIGINT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON',
    PARTITIONS=2);
CREATE TABLE u (id INT PRIMARY KEY, d BIGINT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='DELIMITED',
    VALUE_DELIMITER='|', PARTITIONS=2);
CREATE SOURCE TABLE v (id INT PRIMARY KEY, d BIGINT) WITH (KAFKA_TOPIC='v', VALUE_FORMAT='JSON',
    PARTITIONS=2);
CREATE STREAM plain AS SELECT id, a * 1.5 AS x, CASE WHEN a > 1 THEN 'x''y' ELSE NULL END AS y,
    TRANSFORM(l, e => UCASE(e)) AS z, p->b + 1.25 AS w FROM s WHERE l[1] LIKE 'a%' AND a IN (1, 2);
CREATE STREAM exploded AS SELECT id, EXPLODE(l) AS e FROM s;
CREATE STREAM moved AS SELECT a, id FROM s PARTITION BY a;
CREATE TABLE windows AS SELECT a, COUNT(*) AS n, COLLECT_LIST(id) AS ids FROM s
    WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 5 MINUTES) WHERE a > 3 GROUP BY a HAVING COUNT(*) > 1
    EMIT FINAL;
CREATE TABLE grouped AS SELECT c, SUM(id) AS n FROM t GROUP BY c;
CREATE STREAM both AS SELECT s.id, s.a, r.a FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id;
CREATE STREAM enriched AS SELECT s.id, s.a, c FROM s LEFT JOIN t ON s.id = t.id;
CREATE TABLE tables AS SELECT ROWKEY AS id, c, d FROM t FULL OUTER JOIN u ON t.id = u.id;
CREATE TABLE foreign_keys AS SELECT t.id, c, d FROM t JOIN u ON CAST(t.c AS INT) = u.id;
INSERT INTO moved SELECT a, id FROM s WHERE a < 0 PARTITION BY a;
ALTER STREAM s ADD COLUMN extra STRING;
CREATE OR REPLACE STREAM exploded AS SELECT id, EXPLODE(l) AS e, extra FROM s;
PAUSE ALL;
RESUME ALL;
TERMINATE ALL;
DROP TYPE pair;
DROP STREAM exploded DELETE TOPIC;
ALTER SYSTEM 'ksql.suppress.enabled'='false';
"""


def changes_of(statements: str) -> list[tuple[str, StateChange]]:
    state, found = EngineState(), []
    config = SqlConfig()
    for number, parsed in enumerate(parse(statements)):
        preparation = Preparation(
            state,
            builtin_functions(),
            config,
            {},
            StatementSchemas(None),
            NoTopicShapes(),
            config.kept,
        )
        change = preparation.prepare(parsed.statement, parsed.text, number)  # type: ignore[arg-type]
        state.apply(change)
        found.append((parsed.text, change))
    return found


def command_of(text: str, change: StateChange) -> Command:
    original = {} if change.query is None else change.query.original
    return Command(change.command_id, text, {}, {}, original, change_to_json(change))


def test_a_change_is_the_same_after_its_way_through_the_log() -> None:
    for text, change in changes_of(STATEMENTS):
        logged = decode(*encode(command_of(text, change)), "topic", 0)
        assert change_of(logged, builtin_functions()) == change


def test_a_plan_of_many_columns_is_compressed() -> None:
    columns = ", ".join(f"a_rather_long_column_name_{n} INT" for n in range(1_000))
    [_, (text, change)] = changes_of(
        f"CREATE STREAM wide (id INT KEY, {columns}) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', "
        "PARTITIONS=1); CREATE STREAM o AS SELECT * FROM wide;"
    )
    command = command_of(text, change)
    key, value = encode(command)
    assert len(json.dumps(command.plan)) > 5 * PLAN_BYTES_PLAIN
    assert len(value) < PLAN_BYTES_PLAIN
    assert change_of(decode(key, value, "topic", 0), builtin_functions()) == change


@pytest.mark.parametrize("packed", ["", "AAAA", "x", None, 1])
def test_a_compressed_plan_that_is_damaged_is_refused(packed: object) -> None:
    body = {"statement": "x", "streamsProperties": {}, "plan": {"zlib": packed}, "version": 2}
    with pytest.raises(CommandLogError, match="whose plan cannot be read"):
        decode(b'"x"', json.dumps(body).encode(), "topic", 0)


@pytest.mark.parametrize("file", LOGS, ids=lambda each: each.stem)
def test_logs_of_earlier_versions_are_read(file: Path) -> None:
    """The files are as servers wrote them: they are never rewritten, only new ones are added."""
    for record in json.loads(file.read_text()):
        key, value = json.dumps(record["key"]).encode(), json.dumps(record["value"]).encode()
        change = change_of(decode(key, value, "topic", 0), builtin_functions())
        assert change.command_id == record["key"]
        if change.query is not None:
            assert explain_text(change.query.planned.plan) == record["explained"]
            assert not change.query.unavailable
            assert SqlConfig().with_kept(change.query.original, {})["auto.offset.reset"] == "latest"


def test_a_plan_with_a_function_that_is_not_available_can_be_read_and_written() -> None:
    [*_, (text, change)] = changes_of(STATEMENTS.split("CREATE STREAM exploded")[0])
    command = command_of(text, change)
    plan = json.loads(json.dumps(command.plan).replace('"UCASE"', '"NO_SUCH"'))
    assert plan != command.plan
    read = change_of(Command(command.id, text, {}, {}, command.original, plan), builtin_functions())
    assert read.query is not None
    assert "NO_SUCH(STRING)" in read.query.unavailable
    assert change_to_json(read) == plan
