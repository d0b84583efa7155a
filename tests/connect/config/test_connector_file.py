"""Connectors in files."""

from pathlib import Path

import pytest

from connect.config.connector_file import ConnectorFile, read_connector
from connect.errors import ConfigError
from connect.state.task_state import TargetState


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.properties", "name=src\nconnector.class=X\ntasks.max=2\n"),
        ("c.json", '{"name": "src", "connector.class": "X", "tasks.max": 2}'),
        (
            "c.json",
            '{"name": "src", "config": {"name": "src", "connector.class": "X", "tasks.max": "2"}}',
        ),
        ("c.json", '{"config": {"name": "src", "connector.class": "X", "tasks.max": "2"}}'),
    ],
)
def test_a_connector_may_be_written_in_several_ways(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    config = {"name": "src", "connector.class": "X", "tasks.max": "2"}
    assert read_connector(tmp_path / name) == ConnectorFile("src", config)


def test_a_connector_may_begin_paused(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"name": " src ", "config": {}, "initial_state": "paused"}')
    assert read_connector(file) == ConnectorFile("src", {}, TargetState.PAUSED)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.properties", "connector.class=X\n"),
        ("c.json", "{"),
        ("c.json", "[]"),
        ("c.json", '{"config": {}}'),
        ("c.json", '{"name": "", "config": {}}'),
        ("c.json", '{"name": "a", "config": []}'),
        ("c.json", '{"name": "a", "config": {"b": {}}}'),
        ("c.json", '{"name": "a", "config": {}, "initial_state": "flying"}'),
        ("c.json", None),
    ],
)
def test_a_file_without_a_connector_is_named(
    tmp_path: Path, name: str, content: str | None
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError) as caught:
        read_connector(tmp_path / name)
    assert name in str(caught.value)
