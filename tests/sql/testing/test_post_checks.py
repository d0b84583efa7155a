"""What a case says of sources and topics after it ran."""

from typing import Any

import pytest

from sql.functions.builtin import builtin_functions
from sql.parse import parse
from sql.testing.engine import TestEngine
from sql.testing.failures import CaseFailed
from sql.testing.post_checks import check_post

STATEMENTS = """
CREATE STREAM s (k STRING KEY, a INT) WITH (kafka_topic='s', value_format='JSON', partitions=2);
CREATE STREAM o WITH (format='AVRO') AS SELECT * FROM s;
CREATE TABLE w AS SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY k;
CREATE SOURCE STREAM r (a INT) WITH (kafka_topic='s', value_format='JSON', wrap_single_value=false);
"""


@pytest.fixture(scope="module")
def engine() -> TestEngine:
    made = TestEngine(builtin_functions(), {})
    for parsed in parse(STATEMENTS):
        made.execute(parsed)
    return made


VALUE_SCHEMA = {
    "type": "record",
    "name": "KsqlDataSourceSchema",
    "namespace": "io.confluent.ksql.avro_schemas",
    "fields": [{"name": "A", "type": ["null", "int"], "default": None}],
    "connect.name": "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema",
}
PLAIN_KEY = {"format": "KAFKA", "window_type": None, "window_size_ms": None}
WINDOWED_KEY = {"format": "KAFKA", "window_type": "TUMBLING", "window_size_ms": 5000}


# Any: what JSON holds.
def source(**parts: Any) -> dict[str, Any]:
    return {"sources": [{"name": "S", "type": "STREAM", **parts}]}


def topic(**parts: Any) -> dict[str, Any]:
    return {"topics": {"required": [{"name": "O", **parts}]}}


@pytest.mark.parametrize(
    "post",
    [
        None,
        {},
        source(schema="K STRING KEY, A INT"),
        source(key_format=PLAIN_KEY, value_format="JSON", value_features=[], is_source=False),
        source(name="W", type="table", key_format=WINDOWED_KEY),
        source(name="R", is_source=True, value_features=["UNWRAP_SINGLES"]),
        source(name="O", key_features=["UNWRAP_SINGLES"]),
        topic(value_format={"format": "AVRO", "features": []}, value_schema=VALUE_SCHEMA),
        topic(name="s", partitions=2),
        topic(name="O", partitions=4),
        topic(name="_confluent-ksql-some.ksql.service.idquery_X-Join-left-repartition"),
        {"topics": {"forbidden_regex": ".*-repartition"}},
    ],
)
def test_what_is_true_passes(engine: TestEngine, post: dict[str, Any] | None) -> None:
    check_post(engine, post, [])


@pytest.mark.parametrize(
    ("post", "why"),
    [
        (source(name="X"), "no stream or table X"),
        (source(type="TABLE"), "type of S"),
        (source(schema="K STRING KEY, A BIGINT"), "schema of S"),
        (source(schema="K STRING, A INT"), "schema of S"),
        (source(name="W", type="TABLE", key_format=PLAIN_KEY), "window of W"),
        (source(key_format=WINDOWED_KEY), "window of S"),
        (source(value_format="AVRO"), "value format of S"),
        (source(value_features=["WRAP_SINGLES"]), "value features of S"),
        (source(is_source=True), "is_source of S"),
        (topic(name="nowhere"), 'no topic "nowhere"'),
        (topic(key_format={"format": "JSON", "features": []}), "key format of O"),
        (topic(value_format={"format": "AVRO", "features": ["X"]}), "value features of O"),
        (topic(partitions=5), "partitions of O"),
        (topic(value_schema=VALUE_SCHEMA | {"name": "Other"}), "schema of O-value"),
        ({"topics": {"forbidden_regex": "^s$"}}, 'topic "s" exists but must not'),
        ({"topics": {"forbidden_regex": ".*-repartition"}}, "exists but must not"),
    ],
)
def test_what_is_not_fails(engine: TestEngine, post: dict[str, Any], why: str) -> None:
    with pytest.raises(CaseFailed, match=why):
        check_post(engine, post, ["Aggregate-GroupBy-repartition"])
