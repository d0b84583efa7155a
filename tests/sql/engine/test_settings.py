"""Settings of a server and what sessions may override."""

from dataclasses import fields
from pathlib import Path

import pytest

from broker.client.config import ClusterConfig, NetworkConfig, ProducerConfig
from broker.client.consumer_config import ConsumerConfig
from sql.engine.session import SqlSession
from sql.engine.settings import EDITABLE, FIXED, SqlConfig
from sql.engine.streams_settings import CLIENT_NAMES, STREAMS_NAMES, WITHOUT_EFFECT
from sql.engine.unused_settings import SATISFIED, UNUSED
from sql.errors import StatementFailed
from sql.syntax.statements import SetProperty

WRAPPING = "ksql.persistence.wrap.single.values"


def test_settings_have_ksqldbs_defaults() -> None:
    config = SqlConfig()
    assert config.text("ksql.service.id") == "default_"
    assert config.whole("commit.interval.ms") == 2000
    assert config.flag("ksql.query.pull.table.scan.enabled")


def test_a_session_overrides_settings_of_streams_with_and_without_their_prefix() -> None:
    config = SqlConfig({"ksql.streams.auto.offset.reset": "earliest"})
    assert config["auto.offset.reset"] == "earliest"
    under = config.with_session({"auto.offset.reset": "latest", "commit.interval.ms": "100"})
    assert under.streams_settings()["auto_offset_reset"] == "latest"
    assert under.streams_settings()["commit_interval_ms"] == 100


ALL_OF_STREAMS = sorted({*(each.replace("_", ".") for each in STREAMS_NAMES), *CLIENT_NAMES})


@pytest.mark.parametrize("name", ALL_OF_STREAMS)
def test_each_setting_of_streams_goes_to_queries_or_is_said_to_have_no_effect(name: str) -> None:
    config = SqlConfig({f"ksql.streams.{name}": "7"})
    given = config.streams_settings()
    scopes = {name.replace(".", "_"), f"consumer.{name}", f"producer.{name}"}
    if name in config.without_effect:
        assert not scopes & set(given)
        with pytest.raises(StatementFailed, match=r"has no effect|prohibited"):
            SqlSession().change(config, SetProperty(name, "7"))
    else:
        assert {str(given[each]) for each in scopes if each in given} == {"7"}


@pytest.mark.parametrize("name", sorted(UNUSED))
def test_other_values_than_the_default_have_no_effect_and_are_refused(name: str) -> None:
    default = SqlConfig()[name]
    other = not default if isinstance(default, bool) else f"{default}7"
    assert name not in SqlConfig({name: default}).without_effect
    assert name in SqlConfig({name: other}).without_effect
    with pytest.raises(StatementFailed, match=r"has no effect|prohibited"):
        SqlSession().change(SqlConfig(), SetProperty(name, str(other)))


@pytest.mark.parametrize("name", sorted(SATISFIED))
def test_settings_that_any_value_satisfies_are_accepted(name: str) -> None:
    default = SqlConfig()[name]
    other = str(not default) if isinstance(default, bool) else "7"
    assert not SqlConfig({name: other}).without_effect
    session = SqlSession()
    session.change(SqlConfig(), SetProperty(name, other))
    assert str(session.properties[name]) == other


def test_every_setting_of_ksqldb_is_read_or_has_no_effect() -> None:
    sources = [each.read_text() for each in Path("sql").rglob("*.py")]
    for name in {*EDITABLE, *FIXED} - set(UNUSED) - SATISFIED:
        # Once in the table of defaults, and at least once where it acts.
        assert sum(text.count(f'"{name}"') + text.count(f"'{name}'") for text in sources) > 1, name


@pytest.mark.parametrize("name", sorted(CLIENT_NAMES - set(WITHOUT_EFFECT)))
def test_a_setting_of_clients_without_a_prefix_goes_to_those_that_know_it(name: str) -> None:
    given = SqlConfig({f"ksql.streams.{name}": "1"}).streams_settings()
    known = {
        "consumer.": (NetworkConfig, ClusterConfig, ConsumerConfig),
        "producer.": (NetworkConfig, ClusterConfig, ProducerConfig),
    }
    for prefix, classes in known.items():
        names = {each.name for kind in classes for each in fields(kind)}
        assert (f"{prefix}{name}" in given) is (name.replace(".", "_") in names)


def test_a_prefix_says_more_than_none() -> None:
    names = {"ksql.streams.producer.linger.ms": "5", "ksql.streams.linger.ms": "1"}
    for order in (names, dict(reversed(names.items()))):
        assert SqlConfig(order).streams_settings()["producer.linger.ms"] == "5"


@pytest.mark.parametrize(
    ("given", "value"),
    [({}, None), ({WRAPPING: ""}, None), ({WRAPPING: "False"}, False), ({WRAPPING: True}, True)],
)
def test_nothing_is_said_of_single_values_until_it_is_set(
    given: dict[str, object], value: bool | None
) -> None:
    assert SqlConfig(given)[WRAPPING] is value


@pytest.mark.parametrize("name", ["fish", "ksql.fish", "ksql.streams.fish"])
def test_unknown_settings_are_refused(name: str) -> None:
    with pytest.raises(StatementFailed, match=f"Unknown property: {name}"):
        SqlConfig({name: "1"})


@pytest.mark.parametrize("name", ["ksql.service.id", "state.dir", "ksql.streams.state.dir"])
def test_what_the_servers_start_decides_is_not_the_sessions(name: str) -> None:
    with pytest.raises(StatementFailed, match="prohibited by the KSQL server"):
        SqlConfig().check_override(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ksql.suppress.enabled", "maybe"),
        (WRAPPING, "maybe"),
        ("commit.interval.ms", "soon"),
    ],
)
def test_values_must_be_what_the_setting_is(name: str, value: str) -> None:
    with pytest.raises(StatementFailed, match="Invalid value"):
        SqlConfig({name: value})


def test_settings_of_spark_go_to_its_session() -> None:
    config = SqlConfig({"spark.executor.memory": "4g", "spark.master": "local[2]"})
    assert config.spark_settings() == {"spark.executor.memory": "4g"}
    for name in ("spark.executor.memory", "spark.master", "spark.bounded"):
        with pytest.raises(StatementFailed, match="prohibited by the KSQL server"):
            config.check_override(name)


def test_a_bounded_engine_reads_all_history_by_default() -> None:
    assert SqlConfig({"spark.bounded": "true"})["auto.offset.reset"] == "earliest"
    both = {"spark.bounded": "true", "auto.offset.reset": "latest"}
    assert SqlConfig(both)["auto.offset.reset"] == "latest"
    assert SqlConfig({"spark.bounded": "false"})["auto.offset.reset"] == "latest"


def test_an_engine_may_be_written_in_capitals() -> None:
    assert SqlConfig({"engine": "SPARK"})["engine"] == "spark"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ksql.authentication.plugin.class", "com.example.Plugin"),
        ("ksql.access.validator.enable", "on"),
        ("listeners", "http://localhost:1,https://localhost:2"),
        ("authentication.method", "BASIC"),
    ],
)
def test_protection_that_is_not_there_is_refused_not_ignored(name: str, value: str) -> None:
    with pytest.raises(StatementFailed):
        SqlConfig({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("ksql.authentication.plugin.class", ""), ("ksql.access.validator.enable", "off")],
)
def test_settings_that_ask_for_no_protection_are_accepted(name: str, value: str) -> None:
    assert SqlConfig({name: value})[name] == value
