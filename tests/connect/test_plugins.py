"""Plugins by the names that users write."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from connect.api import SinkConnector, SourceConnector
from connect.builtin_plugins import builtin_plugins
from connect.connectors.file_stream_source import FileStreamSourceConnector
from connect.errors import ConfigError
from connect.plugin_finder import PluginFinder, PluginKind
from connect.plugins import Plugins
from connect.transforms.cast import CastValue

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.mark.parametrize(
    "name",
    [
        FILE_SOURCE,
        "FileStreamSourceConnector",
        "FileStreamSource",
        "connect.connectors.file_stream_source:FileStreamSourceConnector",
    ],
)
def test_a_connector_goes_by_several_names(name: str) -> None:
    plugins = Plugins(entries=())
    assert plugins.connector(name) is FileStreamSourceConnector
    assert plugins.kind_of(name) is PluginKind.SOURCE
    assert plugins.class_name(name) == FILE_SOURCE
    assert plugins.task_name(name) == "org.apache.kafka.connect.file.FileStreamSourceTask"


def test_what_comes_with_the_worker_is_there() -> None:
    plugins = Plugins(entries=())
    for plugin in builtin_plugins():
        assert plugins.find(plugin.kind, plugin.name) is not None, plugin
        assert plugins.version(plugin.kind, plugin.name)


def test_a_transform_of_values_has_only_its_full_name() -> None:
    finder: PluginFinder = Plugins(entries=())
    name = "org.apache.kafka.connect.transforms.Cast$Value"
    assert finder.find(PluginKind.TRANSFORMATION, name) is CastValue
    assert finder.find(PluginKind.TRANSFORMATION, "Cast$Value") is None
    assert finder.find(PluginKind.TRANSFORMATION, "Value") is None


def test_the_kind_must_be_right() -> None:
    plugins = Plugins(entries=())
    assert plugins.find(PluginKind.SINK, FILE_SOURCE) is None
    assert plugins.find(PluginKind.CONVERTER, FILE_SOURCE) is None
    assert plugins.find(PluginKind.SOURCE, "connect.transforms.cast:CastValue") is None


@pytest.mark.parametrize("name", ["", "Nope", "no_such_module:Nope", "connect.api:Nope", ":", "a:"])
def test_a_connector_that_is_not_there_is_named_with_those_that_are(name: str) -> None:
    with pytest.raises(ConfigError, match="which name matches") as caught:
        Plugins(entries=()).connector(name)
    assert FILE_SOURCE in caught.value.message
    assert Plugins(entries=()).class_name(name) is None


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weather_connect.py").write_text(
        "from connect.api import SinkConnector, SourceConnector\n"
        "class WeatherSourceConnector(SourceConnector):\n"
        "    def start(self, config): pass\n"
        "    def task_class(self): return int\n"
        "    def task_configs(self, max_tasks): return []\n"
        "    @classmethod\n"
        "    def version(cls): return '7.0'\n"
        "class WeatherSink(SinkConnector):\n"
        "    pass\n"
    )
    (tmp_path / "needs_more.py").write_text("import a_missing_library\n")
    (tmp_path / "breaks.py").write_text("raise RuntimeError('out of order')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("weather_connect", "needs_more", "breaks"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("third_party")
def test_installed_packages_add_theirs_by_entry_points() -> None:
    entries = [
        EntryPoint("weather", "weather_connect:WeatherSourceConnector", "millstream.connectors"),
        EntryPoint("weather-out", "weather_connect:WeatherSink", "millstream.connectors"),
    ]
    plugins = Plugins(entries=entries)
    place = "weather_connect:WeatherSourceConnector"
    for name in ("weather", "WeatherSource", "WeatherSourceConnector", place):
        assert plugins.class_name(name) == place
    assert issubclass(plugins.connector("weather"), SourceConnector)
    assert issubclass(plugins.connector("WeatherSink"), SinkConnector)
    assert place in plugins.class_names(PluginKind.SOURCE)
    assert place not in plugins.class_names(PluginKind.SINK)
    assert plugins.version(PluginKind.SOURCE, "weather") == "7.0"
    assert plugins.task_name("weather") == "builtins:int"


@pytest.mark.usefixtures("third_party")
def test_a_class_of_a_listed_module_is_found_by_its_place() -> None:
    plugins = Plugins(entries=(), modules=["weather_connect"])
    assert issubclass(plugins.connector("weather_connect:WeatherSink"), SinkConnector)
    assert plugins.kind_of("weather_connect:WeatherSink") is PluginKind.SINK


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize("kind", PluginKind)
def test_a_module_that_is_not_listed_is_not_even_imported(kind: PluginKind) -> None:
    plugins = Plugins(entries=(), modules=["weather", "weather_connect.more", "other"])
    for name in ("weather_connect:WeatherSink", "breaks:C", "tests.connect.scripted:ScriptedSink"):
        assert plugins.find(kind, name) is None
        assert plugins.class_name(name) is None
    assert "weather_connect" not in sys.modules
    assert "breaks" not in sys.modules
    with pytest.raises(ConfigError, match="which name matches breaks:C") as refused:
        plugins.connector("breaks:C")
    assert "plugin.modules" in refused.value.hint


def test_modules_inside_of_a_listed_package_are_listed() -> None:
    plugins = Plugins(entries=(), modules=["tests.connect"])
    assert plugins.kind_of("tests.connect.scripted:ScriptedSink") is PluginKind.SINK
    assert (
        Plugins(entries=(), modules=["tests.con"]).kind_of("tests.connect.scripted:ScriptedSink")
        is None
    )


@pytest.mark.usefixtures("third_party")
def test_a_missing_library_is_named_when_the_plugin_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plugins = Plugins(
        entries=[EntryPoint("c", "needs_more:C", "millstream.converters")],
        modules=["needs_more", "breaks"],
    )
    with pytest.raises(ConfigError, match='needs the module "a_missing_library"'):
        plugins.find(PluginKind.CONVERTER, "c")
    with pytest.raises(ConfigError, match='needs the module "a_missing_library"'):
        plugins.connector("needs_more:C")
    with pytest.raises(ConfigError, match="cannot be imported: out of order"):
        plugins.connector("breaks:C")
    Plugins(entries=[EntryPoint("bad", "needs_more:C", "millstream.connectors")])
    assert 'connector "bad" cannot be used' in caplog.text


@pytest.mark.usefixtures("third_party")
def test_a_name_of_two_plugins_is_the_name_of_none() -> None:
    entries = [
        EntryPoint("one", "weather_connect:WeatherSink", "millstream.connectors"),
        EntryPoint(
            "one",
            "connect.connectors.file_stream_sink:FileStreamSinkConnector",
            "millstream.connectors",
        ),
    ]
    plugins = Plugins(entries=entries)
    assert plugins.kind_of("one") is None
    assert plugins.kind_of("WeatherSink") is PluginKind.SINK
