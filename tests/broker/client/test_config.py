"""Settings of clients: strings become what a setting must be, by its definition."""

import pytest

from broker.client import admin, consumer, producer
from broker.client.config import ClusterConfig, NetworkConfig, ProducerConfig, take
from broker.client.consumer_config import ConsumerConfig
from broker.errors import ConfigError


@pytest.mark.parametrize("password", ["0123", "true", "false", "-1", "1e3", "", " x ", "null"])
def test_a_password_stays_the_string_it_is(password: str) -> None:
    options: dict[str, object] = {"bootstrap_servers": "x:1", "sasl_password": password}
    assert take(NetworkConfig, options).sasl_password == password


@pytest.mark.parametrize(
    ("config", "name", "text", "value"),
    [
        (ConsumerConfig, "enable_auto_commit", "false", False),
        (ConsumerConfig, "enable_auto_commit", "TRUE", True),
        (ConsumerConfig, "max_poll_records", "10", 10),
        (ConsumerConfig, "max_poll_records", " 10 ", 10),
        (ConsumerConfig, "partition_assignment_strategy", "range, sticky", ("range", "sticky")),
        (ConsumerConfig, "client_rack", "7", "7"),
        (ClusterConfig, "allow_auto_create_topics", "false", False),
        (ProducerConfig, "acks", "1", "1"),
        (ProducerConfig, "acks", 1, 1),
        (ProducerConfig, "enable_idempotence", "false", False),
        (ProducerConfig, "linger_ms", "0", 0),
        (ProducerConfig, "transactional_id", "42", "42"),
    ],
)
def test_strings_become_what_a_setting_must_be(
    config: type[object], name: str, text: object, value: object
) -> None:
    assert getattr(take(config, {name: text}), name) == value


@pytest.mark.parametrize(
    ("config", "name", "value", "hint"),
    [
        (ConsumerConfig, "enable_auto_commit", "yes", "true"),
        (ConsumerConfig, "max_poll_records", "many", "integer"),
        (ConsumerConfig, "max_poll_records", "1.5", "integer"),
        (NetworkConfig, "sasl_password", 123, "string"),
        (NetworkConfig, "sasl_username", True, "string"),
        (ProducerConfig, "acks", True, "string"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_name(
    config: type[object], name: str, value: object, hint: str
) -> None:
    with pytest.raises(ConfigError, match=f'"{name}" (is|has a value of type) ') as refused:
        take(config, {"bootstrap_servers": "x:1", name: value})
    assert hint in (refused.value.hint or "")


def test_a_password_that_is_refused_is_not_shown() -> None:
    for opened in (producer, consumer, admin):
        with pytest.raises(ConfigError) as refused:
            opened("localhost:1", sasl_password=987654)
        assert "987654" not in str(refused.value)
