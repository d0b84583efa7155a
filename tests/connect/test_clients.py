"""Settings of clients, by Kafka's names."""

import pytest

from broker import Broker
from connect.clients import Clients, client_settings, is_client_setting
from connect.errors import ConfigError


def test_names_with_dots_and_strings_become_options() -> None:
    assert client_settings(
        "producer",
        {
            "compression.type": "zstd",
            "linger.ms": "20",
            "enable.idempotence": "false",
            "max.block.ms": "9223372036854775807",
            "acks": "1",
        },
    ) == {
        "compression_type": "zstd",
        "linger_ms": 20,
        "enable_idempotence": False,
        "max_block_ms": 2_147_483_647,
        "acks": "1",
    }


def test_javas_assignors_are_ours() -> None:
    strategy = (
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor,"
        "org.apache.kafka.clients.consumer.RangeAssignor"
    )
    found = client_settings("consumer", {"partition.assignment.strategy": strategy})
    assert found == {"partition_assignment_strategy": ["cooperative-sticky", "range"]}


def test_logins_and_pem_files_are_understood() -> None:
    named = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="al\\"ice" password="pass word";',
        "ssl.truststore.location": "/etc/ca.pem",
        "ssl.truststore.type": "PEM",
    }
    assert client_settings("admin", named) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": 'al"ice',
        "sasl_password": "pass word",
        "ssl_ca_location": "/etc/ca.pem",
    }
    assert all(is_client_setting("admin", name) for name in named)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"linger.msec": "5"}, 'unknown setting "linger.msec" of a producer'),
        ({"interceptor.classes": "a.B"}, 'unknown setting "interceptor.classes"'),
        ({"linger.ms": "soon"}, "Invalid value soon for configuration linger.ms"),
        ({"ssl.truststore.type": "JKS"}, '"ssl.truststore.type" is "JKS"'),
        ({"sasl.jaas.config": "Krb5LoginModule required;"}, "no username and password"),
    ],
)
def test_what_our_clients_cannot_do_is_refused_by_name(named: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        client_settings("producer", named)


def test_a_typo_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError) as raised:
        client_settings("consumer", {"max.pol.records": "5"})
    assert raised.value.hint == 'did you mean "max.poll.records"?'


def test_the_connector_comes_before_the_worker_and_both_before_defaults(broker: Broker) -> None:
    clients = Clients(broker, {"producer.linger.ms": "7", "producer.acks": "1"})
    override = {"producer.override.linger.ms": "9", "name": "x"}
    with clients.producer(override, linger_ms=5, acks="all", retries=3) as made:
        config = made._config  # nothing public shows them
        assert (config.linger_ms, config.acks, config.retries) == (9, "1", 3)


def test_an_override_may_name_another_cluster(broker: Broker) -> None:
    clients = Clients(broker)
    override = {"consumer.override.bootstrap.servers": "127.0.0.1:1", "name": "x"}
    with clients.consumer(override) as made:
        assert type(made._cluster.transport).__name__ == "NetworkTransport"


def test_values_that_cannot_work_together_are_refused_as_settings(broker: Broker) -> None:
    with pytest.raises(ConfigError, match="compression_type"):
        Clients(broker).producer({"producer.override.compression.type": "rar"})
