"""Settings of the platform: from a file, the environment and flags, the stronger wins."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.errors import ConfigError
from millstream.__main__ import command_line
from millstream.commands.options import BOOTSTRAP, platform_address
from millstream.settings import KEYS, PORTS, PlatformSettings, load_settings, settings_by_service
from tests.support.tidy import ROOT


@pytest.fixture(autouse=True)
def no_file_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ports(settings: PlatformSettings) -> list[int]:
    return [settings.port(service) for service in PORTS]


def test_without_anything_the_usual_ports_hold() -> None:
    settings = load_settings({}, environment={})
    assert settings == PlatformSettings()
    assert ports(settings) == [9092, 8081, 8083, 8088]
    assert settings.url("sql") == "http://127.0.0.1:8088"


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file() -> None:
    Path("millstream.toml").write_text('data-dir = "file"\nhost = "file"\nsql-port = 1\n')
    environment = {"MILLSTREAM_HOST": "variable", "MILLSTREAM_SQL_PORT": "2"}
    settings = load_settings({"sql-port": 3, "host": None}, environment=environment)
    assert (settings.data_dir, settings.host, settings.sql_port) == ("file", "variable", 3)


def test_settings_of_services_are_merged_by_name() -> None:
    Path("millstream.toml").write_text(
        '[broker]\n"log.retention.hours" = 1\nlog.segment.bytes = 2\n[sql]\n"a.b" = true\n'
    )
    environment = {"MILLSTREAM_BROKER_LOG_SEGMENT_BYTES": "3", "MILLSTREAM_CONNECT_GROUP_ID": "g"}
    flags = settings_by_service({"broker.num.partitions": "4"})
    settings = load_settings(flags, environment=environment)
    assert settings.broker == {
        "log.retention.hours": "1",
        "log.segment.bytes": "3",
        "num.partitions": "4",
    }
    assert settings.connect == {"group.id": "g"}
    assert settings.sql == {"a.b": "true"}


def test_a_base_gives_the_ports_one_after_the_other() -> None:
    assert ports(load_settings({"port-base": 20_000}, environment={})) == [
        20_000,
        20_001,
        20_002,
        20_003,
    ]
    assert ports(load_settings({"port-base": 0}, environment={})) == [0, 0, 0, 0]


def test_a_port_of_its_own_wins_over_a_base_unless_the_base_is_stronger() -> None:
    Path("millstream.toml").write_text("port-base = 100\nsql-port = 5\n")
    assert ports(load_settings({}, environment={})) == [100, 101, 102, 5]
    assert ports(load_settings({"port-base": 200}, environment={})) == [200, 201, 202, 203]


def test_another_file_is_named_by_a_variable_or_a_flag() -> None:
    for name in ("a", "b"):
        Path(name).write_text(f'host = "{name}"')
    environment = {"MILLSTREAM_CONFIG": "a"}
    assert load_settings({}, environment=environment).host == "a"
    assert load_settings({}, environment=environment, file=Path("b")).host == "b"


def test_variables_of_single_commands_are_left_to_them() -> None:
    environment = {"MILLSTREAM_BOOTSTRAP": "x", "MILLSTREAM_SQL_USER": "u:p", "PATH": "y"}
    assert load_settings({}, environment=environment) == PlatformSettings()


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("prot-base = 1", 'unknown setting "prot-base"', 'did you mean "port-base"?'),
        ("colour = 1", 'unknown setting "colour"', "the settings are host, data-dir"),
        ("broker = 1", '"broker" is not a table', "[broker]"),
        ("sql-port = 70000", '"sql-port" is "70000"', "a port must be between 0 and 65535"),
        ("=", "cannot read the settings", "the file must be valid TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(text: str, what: str, where: str) -> None:
    Path("millstream.toml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_settings({}, environment={})
    assert what in str(raised.value)
    assert where in str(raised.value)
    assert "at: millstream.toml" in str(raised.value)


def test_an_unknown_variable_is_named() -> None:
    with pytest.raises(ConfigError, match='variable "MILLSTREAM_DATADIR"') as raised:
        load_settings({}, environment={"MILLSTREAM_DATADIR": "x"})
    assert raised.value.at == "the environment"
    assert raised.value.hint == 'did you mean "MILLSTREAM_DATA_DIR"?'


def test_an_unknown_service_is_named() -> None:
    with pytest.raises(ConfigError, match=r'"console\.a" is not a setting of a service'):
        settings_by_service({"console.a": "1"})


def test_a_file_that_is_named_must_be_there() -> None:
    with pytest.raises(ConfigError, match="cannot read the settings"):
        load_settings({}, environment={}, file=Path("none.toml"))


def test_every_setting_is_in_the_table_of_the_readme() -> None:
    table = (ROOT / "millstream" / "README.md").read_text()
    for key in KEYS:
        assert f"| `{key}` |" in table or f"| `[{key}]` |" in table


def test_other_commands_look_where_the_file_and_variables_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert platform_address("broker") == BOOTSTRAP == "127.0.0.1:9092"
    Path("millstream.toml").write_text("port-base = 20000\n")
    assert platform_address("broker") == "127.0.0.1:20000"
    assert platform_address("connect") == "http://127.0.0.1:20002"
    monkeypatch.setenv("MILLSTREAM_CONNECT_PORT", "7")
    assert platform_address("connect") == "http://127.0.0.1:7"


def test_a_command_without_an_address_asks_the_service_of_the_file() -> None:
    Path("millstream.toml").write_text("connect-port = 1\n")
    result = CliRunner().invoke(command_line, ["connectors", "list"])
    assert "http://127.0.0.1:1" in str(result.exception)
    assert "[default: (http://127.0.0.1:8083)]" in CliRunner().invoke(
        command_line, ["connectors", "list", "--help"], env={"COLUMNS": "200"}
    ).output.replace("\n", " ")
