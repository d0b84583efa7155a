"""Settings of a server and what sessions may override."""

import pytest

from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed

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


def test_a_bounded_engine_reads_all_history_unless_it_is_told_otherwise() -> None:
    assert SqlConfig({"spark.bounded": "true"})["auto.offset.reset"] == "earliest"
    both = {"spark.bounded": "true", "auto.offset.reset": "latest"}
    assert SqlConfig(both)["auto.offset.reset"] == "latest"
    assert SqlConfig({"spark.bounded": "false"})["auto.offset.reset"] == "latest"


def test_an_engine_may_be_written_in_capitals() -> None:
    assert SqlConfig({"engine": "SPARK"})["engine"] == "spark"
