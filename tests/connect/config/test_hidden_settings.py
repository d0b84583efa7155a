"""Passwords in configurations: hidden in every answer, and kept when what is shown comes back."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence

import httpx
import pytest

from broker import Broker
from connect.api import SourceConnector, SourceTask
from connect.client import ConnectClient, ConnectRefused
from connect.config.hidden_settings import HiddenSettings
from connect.config.hidden_values import HIDDEN, hide_in_text, is_secret_name
from connect.config.worker_config import WorkerConfig
from connect.config_def import ConfigDef, ConfigType
from connect.errors import BadRequest, ConnectError
from connect.plugins import Plugins
from connect.server import ConnectServer
from tests.connect.running_worker import SETTINGS
from tests.support.peer import wait_until
from tests.support.topics import read_topic

SECRET = "s3cret-enough"
JDBC: Mapping[str, str] = {
    "connector.class": "JdbcSink",
    "topics": "t",
    "connection.url": f"jdbc:postgresql://127.0.0.1:1/db?user=ann&password={SECRET}",
    "connection.user": "ann",
    "connection.password": SECRET,
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": f"http://ann:{SECRET}@registry:8081",
    "value.converter.basic.auth.user.info": f"ann:{SECRET}",
    "consumer.override.sasl.jaas.config": f'Plain required username="a" password="{SECRET}";',
    "some.api.key": SECRET,
}


def hidden() -> HiddenSettings:
    return HiddenSettings(Plugins(entries=()))


def test_what_a_definition_calls_a_password_is_hidden() -> None:
    shown = hidden().shown(JDBC)
    assert SECRET not in str(shown)
    assert shown["connection.password"] == HIDDEN
    assert shown["value.converter.basic.auth.user.info"] == HIDDEN
    assert shown["consumer.override.sasl.jaas.config"] == HIDDEN
    assert shown["connection.user"] == "ann"
    assert shown["connection.url"].endswith(f"user=ann&password={HIDDEN}")
    assert shown["value.converter.schema.registry.url"] == f"http://ann:{HIDDEN}@registry:8081"
    assert list(shown) == list(JDBC)


def test_references_and_empty_values_are_shown() -> None:
    config = {**JDBC, "connection.password": "${file:/etc/secrets:db}", "some.api.key": ""}
    shown = hidden().shown(config)
    assert shown["connection.password"] == "${file:/etc/secrets:db}"
    assert shown["some.api.key"] == ""
    part = hidden().shown({**JDBC, "connection.password": f"${{file:/a:b}}{SECRET}"})
    assert part["connection.password"] == HIDDEN


def test_a_connector_that_is_not_there_hides_by_names() -> None:
    config = {"connector.class": "org.example.Gone", "db.password": SECRET, "topics": "t"}
    shown = hidden().shown(config)
    assert shown == {**config, "db.password": HIDDEN}
    assert hidden().shown({"a": "b"}) == {"a": "b"}


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("connection.password", True),
        ("producer.override.ssl.key.password", True),
        ("ssl.keystore.key", True),
        ("aws.secret.access.key", True),
        ("bearer.token", True),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("key.converter", False),
        ("password.file", False),
        ("tokens", False),
    ],
)
def test_names_of_undefined_settings_say_what_is_secret(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jdbc:x://u:p@h/d failed", f"jdbc:x://u:{HIDDEN}@h/d failed"),
        ("http://u:p@ss:w@h:80/a@b", f"http://u:{HIDDEN}@h:80/a@b"),
        ("http://h:80/a@b", "http://h:80/a@b"),
        ("Authorization: Bearer abc|X: y", f"Authorization: {HIDDEN}|X: y"),
        ("a?password=p&x=1", "a?password=p&x=1"),
        ("jdbc:a?password=p&x=1", f"jdbc:a?password={HIDDEN}&x=1"),
    ],
)
def test_passwords_in_strings_are_hidden(text: str, shown: str) -> None:
    assert hide_in_text(text) == shown


def test_what_is_shown_means_what_is_stored() -> None:
    shown = hidden().shown(JDBC)
    assert hidden().restored(shown, JDBC) == JDBC
    changed = {**shown, "connection.password": "other", "topics": "u"}
    assert hidden().restored(changed, JDBC) == {
        **JDBC,
        "connection.password": "other",
        "topics": "u",
    }
    plain = {"connector.class": "FileStreamSink", "topics": HIDDEN}
    assert hidden().restored(plain, None) == plain


def test_what_is_hidden_and_not_stored_is_refused() -> None:
    with pytest.raises(BadRequest, match=r'"connection.password" is \[hidden\]'):
        hidden().restored(hidden().shown(JDBC), None)


class LeakySource(SourceConnector):
    """Fails with its password in the message."""

    @classmethod
    def config(cls) -> ConfigDef:
        return (
            ConfigDef().define("login", ConfigType.PASSWORD, "").define("host", ConfigType.INT, 0)
        )

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        wrong = [f"no login with {config['login']}"] if config.get("fails") == "now" else []
        return {"host": wrong} if wrong else {}

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_class(self) -> type[SourceTask]:
        return LeakyTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [self._config]


class LeakyTask(SourceTask):
    def start(self, config: Mapping[str, str]) -> None:
        raise ConnectError(f"cannot log in with {config['login']} to http://a:{SECRET}@h/")

    def poll(self) -> None:
        return

    def stop(self) -> None:
        return


LEAKY = {"connector.class": f"{__name__}:LeakySource", "login": SECRET, "host": "1"}


@pytest.fixture
def server(broker: Broker) -> Iterator[ConnectServer]:
    settings = SETTINGS | {"listeners": "http://127.0.0.1:0", "plugin.modules": "tests"}
    with ConnectServer(broker, WorkerConfig.parse(settings)) as running:
        yield running


@pytest.mark.slow
def test_no_answer_of_the_rest_api_shows_a_password(
    server: ConnectServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = server.url
    created = httpx.post(f"{url}/connectors", json={"name": "c", "config": LEAKY})
    assert created.status_code == 201
    wait_until(lambda: "FAILED" in httpx.get(f"{url}/connectors/c/tasks/0/status").text, "failure")
    answers = [
        created,
        httpx.put(f"{url}/connectors/c/config", json=LEAKY),
        httpx.patch(f"{url}/connectors/c/config", json={"host": "2"}),
        httpx.get(f"{url}/connectors/c"),
        httpx.get(f"{url}/connectors/c/config"),
        httpx.get(f"{url}/connectors/c/tasks"),
        httpx.get(f"{url}/connectors/c/status"),
        httpx.get(f"{url}/connectors?expand=info&expand=status"),
        httpx.put(
            f"{url}/connector-plugins/LeakySource/config/validate",
            json={**LEAKY, "name": "c", "fails": "now", "other.password": SECRET},
        ),
        httpx.post(f"{url}/connectors", json={"name": "d", "config": {**LEAKY, "fails": "now"}}),
        httpx.post(f"{url}/connectors", json={"name": "e", "config": {"password": SECRET}}),
    ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [201, 200, 200, 200, 200, 200, 200, 200, 200, 400, 400]
    for answer in answers:
        assert SECRET not in answer.text, answer.request.url
    assert all(HIDDEN in answer.text for answer in answers)
    assert "cannot log in with" in httpx.get(f"{url}/connectors/c/status").text
    assert SECRET not in caplog.text


@pytest.mark.slow
def test_a_configuration_that_is_put_back_as_it_is_shown_keeps_its_password(
    server: ConnectServer, broker: Broker
) -> None:
    client = ConnectClient(server.url)
    client.create("c", LEAKY)
    client.put_config("c", {**client.describe("c")["config"], "host": "7"})
    stored = [
        json.loads(each.value or b"{}")
        for each in read_topic(broker, "connect-configs", committed=True)
    ]
    configs = [each["properties"] for each in stored if "properties" in each]
    named = [each for each in configs if each.get("host") == "7"]
    assert named
    assert {each["login"] for each in named} == {SECRET}
    with pytest.raises(ConnectRefused, match="placeholder for a hidden password"):
        client.create("d", {**client.describe("c")["config"], "name": "d"})
