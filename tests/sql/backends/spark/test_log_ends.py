"""What the driver asks the cluster: partitions, places, and whether records are gone."""

import logging

import pytest

from broker.client import admin
from broker.errors import ConfigError
from broker.model import TopicPartition
from sql.backends.spark.log_ends import DataLost, LogEnds
from sql.backends.spark.options import EARLIEST, LATEST
from tests.sql.backends.spark.cluster import create, drop_before, fill, fill_and_abort, reading

pytestmark = pytest.mark.slow


def test_places_are_found_by_name_by_time_and_by_offset(servers: str) -> None:
    topic = create(servers, "places")
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    fill(servers, topic, range(10), partition=0)
    ends = LogEnds(reading(servers, topic))
    assert ends.resolve(EARLIEST, EARLIEST) == {one: 0, two: 0}
    assert ends.resolve(LATEST, EARLIEST) == {one: 10, two: 0}
    assert ends.resolve(1_004, EARLIEST) == {one: 4, two: 0}
    assert ends.resolve(9_999, EARLIEST) == {one: 10, two: 0}
    assert ends.resolve({one: 3}, LATEST) == {one: 3, two: 0}
    assert ends.resolve({one: -1, two: -2}, EARLIEST) == {one: 10, two: 0}
    with pytest.raises(ConfigError, match="places-7"):
        ends.resolve({TopicPartition(topic, 7): 0}, EARLIEST)
    ends.close()


def test_a_topic_that_is_not_there_is_named(servers: str) -> None:
    ends = LogEnds(reading(servers, "nowhere"))
    with pytest.raises(ConfigError, match='"nowhere"'):
        ends.resolve(EARLIEST, EARLIEST)
    ends.close()


def test_new_partitions_and_topics_are_found(servers: str) -> None:
    create(servers, "found-a", 1)
    ends = LogEnds(reading(servers, topic_pattern="found-.*"))
    assert ends.partitions() == {TopicPartition("found-a", 0)}
    create(servers, "found-b", 1)
    with admin(servers) as administration:
        administration.create_partitions({"found-a": 2}).all()
    assert ends.partitions() == {
        TopicPartition("found-a", 0),
        TopicPartition("found-a", 1),
        TopicPartition("found-b", 0),
    }
    assert ends.check({TopicPartition("found-a", 0): 0}, {TopicPartition("found-b", 0): 0}) == {
        TopicPartition("found-b", 0): 0
    }
    ends.close()


def test_records_that_are_gone_are_an_error_that_names_them(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = create(servers, "gone", 1)
    tp = TopicPartition(topic, 0)
    fill(servers, topic, range(10))
    drop_before(servers, {tp: 6})
    ends = LogEnds(reading(servers, topic))
    with pytest.raises(DataLost, match="gone-0: offsets 2 to 5") as refused:
        ends.check({tp: 2}, {tp: 10})
    assert "fail_on_data_loss" in str(refused.value)
    with pytest.raises(DataLost, match="the log ends at 10, but 12 was already read"):
        ends.ends_after({tp: 12})
    with pytest.raises(DataLost, match="nowhere-0: the partition does not exist"):
        ends.ends_after({TopicPartition("nowhere", 0): 1})
    ends.close()
    lenient = LogEnds(reading(servers, topic, fail_on_data_loss=False))
    with caplog.at_level(logging.WARNING):
        assert lenient.check({tp: 2}, {tp: 10}) == {tp: 6}
    assert "offsets 2 to 5" in caplog.text
    lenient.close()


def test_the_end_is_where_committed_data_ends(servers: str) -> None:
    topic = create(servers, "aborted", 1)
    fill(servers, topic, range(3))
    fill_and_abort(servers, topic, range(4), partition=0)
    ends = LogEnds(reading(servers, topic))
    assert ends.latest([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 8}
    ends.close()


def test_the_group_s_offsets_can_be_seen(servers: str) -> None:
    topic = create(servers, "seen", 1)
    ends = LogEnds(reading(servers, topic, group_id="watched"))
    ends.commit({TopicPartition(topic, 0): 7})
    ends.close()
    with admin(servers) as administration:
        assert administration.list_group_offsets("watched")[TopicPartition(topic, 0)].offset == 7
