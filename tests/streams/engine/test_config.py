"""StreamsConfig: defaults, names, conversions and refusals."""

from datetime import timedelta
from pathlib import Path

import pytest

from streams.config import StreamsConfig
from streams.errors import StreamsConfigError
from streams.handlers import log_and_continue, log_and_fail
from streams.stream_time import log_and_skip_on_invalid_timestamp


def test_defaults_are_those_of_kafka() -> None:
    config = StreamsConfig.of(application_id="app")
    assert config.commit_interval_ms == 30_000
    assert config.statestore_cache_max_bytes == 10 * 1024 * 1024
    assert config.buffered_records_per_partition == 1000
    assert config.max_task_idle_ms == 0
    assert config.processing_exception_handler is log_and_fail


def test_exactly_once_commits_more_often_unless_told() -> None:
    exactly_once = StreamsConfig.of(processing_guarantee="exactly_once_v2")
    assert exactly_once.exactly_once
    assert exactly_once.commit_interval_ms == 100
    told = StreamsConfig.of(processing_guarantee="exactly_once_v2", commit_interval_ms=5)
    assert told.commit_interval_ms == 5


def test_an_unknown_setting_is_refused_with_a_suggestion() -> None:
    with pytest.raises(StreamsConfigError, match='unknown setting "commit_intervall"') as caught:
        StreamsConfig.of(commit_intervall=5)
    assert caught.value.hint == 'did you mean "commit_interval_ms"?'


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_stream_threads", 0, '"num_stream_threads" is 0'),
        ("poll_ms", 1.5, '"poll_ms" is 1.5'),
        ("poll_ms", True, '"poll_ms" is True'),
        ("poll_ms", "soon", "\"poll_ms\" is 'soon'"),
        ("max_task_idle_ms", -2, '"max_task_idle_ms" is -2'),
        ("processing_guarantee", "exactly_once", "\"processing_guarantee\" is 'exactly_once'"),
        ("application_id", "my app", '"application_id" is "my app"'),
        ("processing_exception_handler", "ignore", '"processing_exception_handler" is'),
        ("topology_optimization", "all", '"topology_optimization" has no effect'),
        ("max_poll_records", 7, '"max_poll_records" has no effect'),
        ("client_id", timedelta(1), '"client_id" is'),
        ("rocksdb_block_cache_bytes", 1 << 20, '"rocksdb_write_buffer_bytes" is 33554432, more'),
    ],
)
def test_what_cannot_work_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(StreamsConfigError) as caught:
        StreamsConfig.of(**{name: value})
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_durations_paths_and_text_become_what_they_must_be() -> None:
    config = StreamsConfig.of(
        commit_interval_ms=timedelta(seconds=2), state_dir=Path("/state"), poll_ms="50"
    )
    assert (config.commit_interval_ms, config.state_dir, config.poll_ms) == (2000, "/state", 50)


def test_kafkas_names_are_understood() -> None:
    config = StreamsConfig.from_properties(
        {
            "application.id": "shop",
            "cache.max.bytes.buffering": "0",
            "default.deserialization.exception.handler": "log_and_continue",
            "default.timestamp.extractor": "log_and_skip",
            "consumer.fetch.max.bytes": 100,
            "__internal__": 1,
        }
    )
    assert config.application_id == "shop"
    assert config.statestore_cache_max_bytes == 0
    assert config.deserialization_exception_handler is log_and_continue
    assert config.default_timestamp_extractor is log_and_skip_on_invalid_timestamp
    assert config.prefixed("consumer.") == {"fetch_max_bytes": 100}
    assert config.get("__internal__") == 1
    assert config.get("application.id") == "shop"
