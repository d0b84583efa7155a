"""Options of the source and the sink."""

import pytest

from broker.errors import ConfigError
from broker.model import TopicPartition
from sql.backends.spark.options import sink_options, source_options
from sql.engine.settings import SqlConfig

SERVERS = {"bootstrap_servers": "localhost:9092"}
READ = {**SERVERS, "topics": "a"}


def test_names_have_no_case_and_spark_s_own_are_left_alone() -> None:
    found = source_options(
        {"Bootstrap_Servers": "h:1", "TOPICS": "a", "checkpointLocation": "/x"}, streaming=True
    )
    assert (found.servers, found.topics, found.starting) == ("h:1", ("a",), "latest")


def test_kafka_s_own_name_of_the_servers_is_taken() -> None:
    found = source_options({"kafka.bootstrap.servers": "h:1", "topics": "a"}, streaming=False)
    assert (found.servers, found.starting) == ("h:1", "earliest")


@pytest.mark.parametrize(
    ("text", "names"),
    [("a", ("a",)), ("a, b,a", ("a", "b")), ('["a", "b"]', ("a", "b"))],
)
def test_topics_are_a_list(text: str, names: tuple[str, ...]) -> None:
    assert source_options({**SERVERS, "topics": text}, streaming=True).topics == names


def test_offsets_times_and_limits_are_read() -> None:
    found = source_options(
        {**READ, "starting_offsets": '{"a": {"0": 12, "1": -2}}', "max_offsets_per_trigger": "7"},
        streaming=True,
    )
    assert found.starting == {TopicPartition("a", 0): 12, TopicPartition("a", 1): -2}
    assert found.max_offsets_per_trigger == 7
    unlimited = source_options({**READ, "max_offsets_per_trigger": "0"}, streaming=True)
    assert unlimited.max_offsets_per_trigger == 0
    timed = source_options({**READ, "starting_timestamp": "1700000000000"}, streaming=True)
    assert timed.starting == 1_700_000_000_000


def test_a_micro_batch_is_limited_unless_no_limit_is_asked_for() -> None:
    # Each task has one transaction, of five minutes.
    assert 0 < source_options(READ, streaming=True).max_offsets_per_trigger <= 1_000_000
    assert 0 < SqlConfig({}).whole("spark.max.offsets.per.trigger") <= 1_000_000


def test_settings_of_clients_get_the_types_of_their_defaults() -> None:
    found = source_options(
        {
            **READ,
            "kafka.fetch.max.bytes": "1000",
            "kafka.check_crcs": "false",
            "kafka.security.protocol": "SSL",
        },
        streaming=True,
    )
    assert found.client == {
        "fetch_max_bytes": 1000,
        "check_crcs": False,
        "security_protocol": "SSL",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "a"}, "bootstrap_servers"),
        ({**SERVERS}, "topics to read are not set, or set twice"),
        ({**READ, "topic_pattern": "b"}, "topics to read are not set, or set twice"),
        ({**SERVERS, "topic_pattern": "("}, "is not a valid pattern"),
        ({**SERVERS, "topics": " , "}, "names no topic"),
        ({**SERVERS, "topics": "[1]"}, "topics"),
        ({**SERVERS, "topics": "[1"}, "topics"),
        ({"bootstrap_servers": "nowhere", "topics": "a"}, "nowhere"),
        ({**READ, "tasks": "0"}, "tasks"),
        ({**READ, "max_offsets_per_trigger": "many"}, "max_offsets_per_trigger"),
        ({**READ, "fail_on_data_loss": "perhaps"}, "fail_on_data_loss"),
        ({**READ, "isolation_level": "none"}, "isolation_level"),
        ({**READ, "starting_offset": "latest"}, "starting_offsets"),
        ({**READ, "starting_timestamp": "-5"}, "starting_timestamp"),
        ({**READ, "starting_timestamp": "5", "starting_offsets": "latest"}, "both"),
        ({**READ, "ending_offsets": "latest"}, "no end"),
        ({**READ, "kafka.group.id": "g"}, "the data source sets"),
        ({**READ, "kafka.fetch.max.byte": "1"}, "fetch_max_bytes"),
        ({**READ, "kafka.fetch.max.bytes": "x"}, "an integer"),
    ],
)
def test_a_wrong_option_of_a_source_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        source_options(options, streaming=True)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "bootstrap_servers"),
        ({**SERVERS, "delivery": "twice"}, "delivery"),
        ({**SERVERS, "topics": "a"}, '"topic"'),
        ({**SERVERS, "kafka.transactional.id": "me"}, "the data source sets"),
        ({**SERVERS, "batch_id": "3", "sink_id": "s"}, "do not identify the micro-batch"),
    ],
)
def test_a_wrong_option_of_a_sink_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sink_options(options)
    assert message in str(refused.value)


def test_a_sink_writes_exactly_once_by_default() -> None:
    assert sink_options(SERVERS).delivery == "exactly_once"
