"""Settings of a worker: Kafka's names and defaults, from files of both kinds."""

import logging
from pathlib import Path

import pytest

from broker.machine import Machine
from connect.config.worker_config import WorkerConfig, parse_listener, read_settings
from connect.errors import ConfigError

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {"key.converter": JSON, "value.converter": JSON}
DISTRIBUTED = {
    **CONVERTERS,
    "group.id": "workers",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "status",
}
STANDALONE = {**CONVERTERS, "offset.storage.file.filename": "/tmp/offsets"}


def test_the_defaults_are_those_of_kafka_connect() -> None:
    config = WorkerConfig.parse(DISTRIBUTED)
    assert config.distributed
    assert not config.exactly_once
    assert config.bootstrap_servers == "localhost:9092"
    assert config.header_converter == "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    assert (config.offset_flush_interval_ms, config.offset_flush_timeout_ms) == (60_000, 5_000)
    assert config.task_shutdown_graceful_timeout_ms == 5_000
    assert (config.offset_storage_partitions, config.status_storage_partitions) == (25, 5)
    assert config.config_storage_replication_factor == 3
    assert config.listeners == ["http://:8083"]
    assert config.topic_tracking_enable
    assert config.topic_tracking_allow_reset
    assert config.topic_creation_enable


def test_a_worker_with_a_file_for_offsets_is_standalone() -> None:
    config = WorkerConfig.parse({**STANDALONE, "group.id": "ignored"})
    assert not config.distributed
    assert config.offset_storage_file_filename == "/tmp/offsets"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, 'Missing required configuration "key.converter" which has no default value'),
        (CONVERTERS, 'Missing required configuration "group.id" which has no default value'),
        (
            {**DISTRIBUTED, "offset.flush.interval.ms": "x"},
            "offset.flush.interval.ms: Not a number",
        ),
        ({**DISTRIBUTED, "exactly.once.source.support": "yes"}, "disabled, preparing, enabled"),
        ({**DISTRIBUTED, **STANDALONE}, "remove one of them"),
        (
            {**DISTRIBUTED, "listeners": "https://:8083"},
            'listener "https://:8083" is not supported',
        ),
        ({**DISTRIBUTED, "listeners": "http://host:port"}, "is not supported"),
        ({**DISTRIBUTED, "config.providers": "file"}, 'config provider "file" has no class'),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WorkerConfig.parse(settings)


def test_an_unknown_setting_is_named_and_a_typo_gets_a_hint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        WorkerConfig.parse(
            {
                **DISTRIBUTED,
                "offset.flush.intervall.ms": "5",
                "plugin.path": "/usr/share/java",
                "producer.linger.ms": "5",
                "security.protocol": "PLAINTEXT",
                "offset.storage.cleanup": "x",
            }
        )
    assert [record.getMessage() for record in caplog.records] == [
        'unknown worker setting "offset.flush.intervall.ms"; '
        'did you mean "offset.flush.interval.ms"?',
        'worker setting "plugin.path" has no effect',
    ]


def test_references_are_resolved_and_values_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "s3cret")
    config = WorkerConfig.parse(
        {
            **DISTRIBUTED,
            "config.providers": "env",
            "config.providers.env.class": "EnvVarConfigProvider",
            "sasl.password": "${env:PASSWORD}",
            "sasl.username": "ann",
            "security.protocol": "SASL_PLAINTEXT",
        }
    )
    assert "s3cret" not in repr(config)
    assert config.own_client_settings(over_network=True) == {
        "client_id": "connect",
        "sasl_password": "s3cret",
        "sasl_username": "ann",
        "security_protocol": "SASL_PLAINTEXT",
    }
    assert config.own_client_settings(over_network=False) == {"client_id": "connect"}


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"listeners": "http://127.0.0.1:8083"}, "127.0.0.1:8083"),
        ({"listeners": "http://127.0.0.1:0"}, "127.0.0.1:4711"),
        ({"rest.advertised.host.name": "worker-1", "rest.advertised.port": "80"}, "worker-1:80"),
    ],
)
def test_a_worker_is_known_by_its_address(settings: dict[str, str], shown: str) -> None:
    assert WorkerConfig.parse(DISTRIBUTED | settings).worker_id(4711, Machine()) == shown


def test_listeners_are_host_and_port() -> None:
    assert parse_listener("http://:8083") == ("", 8083)
    assert parse_listener("http://[::1]:1") == ("::1", 1)
    assert parse_listener("host:0") == ("host", 0)


def test_settings_are_properties_or_json(tmp_path: Path) -> None:
    properties, json = tmp_path / "w.properties", tmp_path / "w.json"
    properties.write_text("group.id=a\ntasks.max = 2\n")
    json.write_text('{"group.id": "a", "tasks.max": 2, "b": true}')
    assert read_settings(properties) == {"group.id": "a", "tasks.max": "2"}
    assert read_settings(json) == {"group.id": "a", "tasks.max": "2", "b": "true"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("w.json", "{"),
        ("w.json", "[]"),
        ("w.json", '{"a": null}'),
        ("w.json", '{"a": {}}'),
        ("w.properties", "nothing"),
        ("w.properties", None),
    ],
)
def test_a_file_that_has_no_settings_is_named(
    tmp_path: Path, name: str, content: str | None
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError) as caught:
        read_settings(tmp_path / name)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rest.extension.classes", "org.apache.kafka.connect.rest.basic.auth.extension.X"),
        ("authentication.method", "BASIC"),
        ("admin.listeners", "http://localhost:8084"),
        ("ssl.client.auth", "required"),
        ("listeners", "https://:8083"),
    ],
)
def test_protection_that_is_not_there_is_refused_not_ignored(name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        WorkerConfig.parse({**DISTRIBUTED, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rest.extension.classes", ""),
        ("authentication.method", "NONE"),
        ("ssl.client.auth", "none"),
    ],
)
def test_settings_that_ask_for_no_protection_are_accepted(name: str, value: str) -> None:
    WorkerConfig.parse({**DISTRIBUTED, name: value})
