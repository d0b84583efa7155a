"""References to values that are kept elsewhere."""

from pathlib import Path

import pytest

from connect.config.providers import ConfigProviders
from connect.errors import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider."


def providers() -> ConfigProviders:
    settings = {
        "config.providers": "file, env,dir",
        "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
        "config.providers.env.class": "EnvVarConfigProvider",
        "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
    }
    return ConfigProviders(settings)


def test_values_come_from_files_folders_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.properties").write_text("user=ann\npassword = s3cret\\=\n")
    (tmp_path / "token").write_text("t0ken")
    monkeypatch.setenv("DB_HOST", "db.example")
    resolved = providers().resolve(
        {
            "url": f"jdbc:x://${{env:DB_HOST}}/a?u=${{file:{tmp_path}/secrets.properties:user}}",
            "password": f"${{file:{tmp_path}/secrets.properties:password}}",
            "token": f"${{dir:{tmp_path}:token}}",
            "plain": "5",
        }
    )
    assert resolved == {
        "url": "jdbc:x://db.example/a?u=ann",
        "password": "s3cret=",
        "token": "t0ken",
        "plain": "5",
    }


def test_a_reference_that_leads_nowhere_stays(tmp_path: Path) -> None:
    (tmp_path / "empty.properties").write_text("")
    for text in (
        "${env:NO_SUCH_VARIABLE_IS_SET}",
        "${vault:a:b}",
        f"${{file:{tmp_path}/empty.properties:key}}",
        f"${{dir:{tmp_path}:nothing}}",
        f"${{dir:{tmp_path}:../secret}}",
        "${topic}-${timestamp}",
        "${",
    ):
        assert providers().resolve({"a": text}) == {"a": text}


def test_providers_that_are_not_declared_read_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    assert ConfigProviders({}).resolve({"a": "${env:SECRET}"}) == {"a": "${env:SECRET}"}


def test_providers_read_only_what_they_are_allowed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_A", "x")
    monkeypatch.setenv("OTHER", "x")
    (tmp_path / "in").mkdir()
    for file in ("in/a.properties", "out.properties"):
        (tmp_path / file).write_text("k=v")
    limited = ConfigProviders(
        {
            "config.providers": "file,env",
            "config.providers.file.class": "FileConfigProvider",
            "config.providers.file.param.allowed.paths": f"{tmp_path}/in",
            "config.providers.env.class": "EnvVarConfigProvider",
            "config.providers.env.param.allowlist.pattern": "KAFKA_.*",
        }
    )
    assert limited.resolve({"a": "${env:KAFKA_A}${env:OTHER}"}) == {"a": "x${env:OTHER}"}
    inside, outside = f"{tmp_path}/in/a.properties", f"{tmp_path}/in/../out.properties"
    assert limited.resolve({"a": f"${{file:{inside}:k}}"}) == {"a": "v"}
    assert limited.resolve({"a": f"${{file:{outside}:k}}"}) == {"a": f"${{file:{outside}:k}}"}


def test_what_tasks_copy_from_their_connector_is_stored_as_the_reference() -> None:
    written = {"password": "${env:P}", "user": "ann"}
    values = {"password": "s3cret", "user": "ann"}
    task = {"password": "s3cret", "user": "ann", "table": "t"}
    assert providers().restore(task, written, values=values) == {
        "password": "${env:P}",
        "user": "ann",
        "table": "t",
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"config.providers": "a"}, 'config provider "a" has no class'),
        (
            {"config.providers": "a", "config.providers.a.class": "Nope"},
            'unknown class "Nope"',
        ),
    ],
)
def test_a_provider_that_cannot_be_made_is_named(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ConfigProviders(settings)


def test_a_file_that_is_missing_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Could not read properties from file /no/such"):
        providers().resolve({"a": "${file:/no/such:k}"})
