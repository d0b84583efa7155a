"""The settings that every connector has, and those of its transforms and predicates."""

from collections.abc import Sequence

import pytest

from connect.api import Predicate, Transformation
from connect.config.connector_config import (
    WorkerConverters,
    check_sink,
    sink_definition,
    source_definition,
)
from connect.config.enrichment import enrich
from connect.config_def import ConfigDef, ConfigType, Importance, NonEmptyString
from connect.errors import ConfigError
from connect.plugin_finder import PluginKind
from connect.records import Record


class Rename(Transformation):
    """Has one setting that must be given."""

    @classmethod
    def config(cls) -> ConfigDef:
        definition = ConfigDef().define("first", ConfigType.STRING, "x", importance=Importance.LOW)
        return definition.define("to", ConfigType.STRING, validator=NonEmptyString())

    def apply(self, record: Record) -> Record:
        return record


class Always(Predicate):
    """Has no settings."""

    def test(self, record: Record) -> bool:
        return True


CLASSES: dict[tuple[PluginKind, str], type] = {
    (PluginKind.TRANSFORMATION, "org.example.Rename"): Rename,
    (PluginKind.TRANSFORMATION, "org.example.Family$Key"): Rename,
    (PluginKind.PREDICATE, "org.example.Always"): Always,
    (PluginKind.CONVERTER, "org.example.TextConverter"): object,
}


class SomePlugins:
    """A few plugins of an example package."""

    def class_name(self, name: str) -> str | None:
        known = {full: full for _, full in CLASSES}
        return known.get(name) or known.get(f"org.example.{name}")

    def find(self, kind: PluginKind, name: str) -> type | None:
        return CLASSES.get((kind, name))

    def class_names(self, kind: PluginKind) -> Sequence[str]:
        return [name for of_kind, name in CLASSES if of_kind is kind]

    def version(self, kind: PluginKind, name: str) -> str | None:
        return "1.2.3" if self.find(kind, name) else None


PLUGINS = SomePlugins()
BASE = {"name": "c", "connector.class": "org.example.Source"}


def errors(definition: ConfigDef, config: dict[str, str]) -> dict[str, list[str]]:
    """What is wrong with some settings."""
    found = definition.validate_all(config)
    return {name: value.errors for name, value in found.items() if value.errors}


def test_a_connector_needs_a_name_and_a_class() -> None:
    assert errors(source_definition(), {}) == {
        "name": ['Missing required configuration "name" which has no default value.'],
        "connector.class": [
            'Missing required configuration "connector.class" which has no default value.'
        ],
    }
    assert errors(source_definition(), BASE) == {}


def test_wrong_settings_are_reported_in_kafkas_words() -> None:
    wrong = {
        "name": "a\tb",
        "tasks.max": "0",
        "errors.tolerance": "some",
        "transforms": "a,a",
        "transaction.boundary.interval.ms": "-1",
        "exactly.once.support": "maybe",
    }
    start = "Invalid value"
    assert errors(source_definition(), {**BASE, **wrong}) == {
        "name": [
            f"{start} a\tb for configuration name: String may not contain control sequences but "
            "had the following ASCII chars: 9"
        ],
        "tasks.max": [f"{start} 0 for configuration tasks.max: Value must be at least 1"],
        "errors.tolerance": [
            f"{start} some for configuration errors.tolerance: String must be one of: none, all"
        ],
        "transforms": [f"{start} [a, a] for configuration transforms: Duplicate alias provided."],
        "transaction.boundary.interval.ms": [
            f"{start} -1 for configuration transaction.boundary.interval.ms: "
            "Value must be at least 0"
        ],
        "exactly.once.support": [
            f"{start} maybe for configuration exactly.once.support: String must be one of "
            "(case insensitive): REQUIRED, REQUESTED"
        ],
    }


def test_the_workers_converters_are_the_defaults() -> None:
    converters = WorkerConverters(key="org.example.TextConverter")
    definition = source_definition(PLUGINS, "org.example.Source", converters)
    found = definition.validate_all(BASE)
    assert found["key.converter"].value == "org.example.TextConverter"
    assert found["key.converter"].recommended_values == ["org.example.TextConverter"]
    assert found["key.converter.plugin.version"].value == "1.2.3"
    assert found["value.converter"].value is None
    assert not found["value.converter.plugin.version"].visible


def test_a_converter_must_be_one() -> None:
    definition = source_definition(PLUGINS)
    assert errors(definition, {**BASE, "key.converter": "Missing"}) == {
        "key.converter": [
            "Invalid value Missing for configuration key.converter: "
            "Class Missing could not be found."
        ]
    }
    assert errors(definition, {**BASE, "key.converter": "Always"}) == {
        "key.converter": [
            "Class class org.example.Always does not implement the Converter interface"
        ]
    }
    found = definition.validate_all({**BASE, "key.converter": " TextConverter "})
    assert found["key.converter"].value == "org.example.TextConverter"


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"topics": "a"}, {}),
        ({"topics.regex": "a.*"}, {}),
        (
            {},
            dict.fromkeys(
                ("topics", "topics.regex"), "Must configure one of topics or topics.regex"
            ),
        ),
        (
            {"topics": "a", "topics.regex": "a"},
            dict.fromkeys(
                ("topics", "topics.regex"),
                "topics and topics.regex are mutually exclusive options, but both are set.",
            ),
        ),
        (
            {"topics": "a,dlq", "errors.deadletterqueue.topic.name": "dlq"},
            {
                "topics": "The DLQ topic 'dlq' may not be included in the list of topics "
                "('topics=[a, dlq]') consumed by the connector"
            },
        ),
        (
            {"topics.regex": "d.*", "errors.deadletterqueue.topic.name": "dlq"},
            {
                "topics.regex": "The DLQ topic 'dlq' may not be matched by the regex for the "
                "topics ('topics.regex=d.*') consumed by the connector"
            },
        ),
    ],
)
def test_a_sink_has_topics_or_an_expression_for_them(
    config: dict[str, str], wrong: dict[str, str]
) -> None:
    found = sink_definition().validate_all({**BASE, **config})
    check_sink(config, found)
    assert {name: value.errors for name, value in found.items() if value.errors} == {
        name: [error] for name, error in wrong.items()
    }


def test_settings_of_transforms_and_predicates_are_settings_of_the_connector() -> None:
    config = {
        **BASE,
        "transforms": "one, two",
        "transforms.one.type": "Rename",
        "transforms.one.to": "y",
        "transforms.two.type": "org.example.Rename",
        "transforms.two.to": "",
        "transforms.two.predicate": "all",
        "transforms.two.negate": "true",
        "predicates": "all",
        "predicates.all.type": "Always",
    }
    definition = enrich(source_definition(PLUGINS), config, PLUGINS)
    added = [key for key in definition.keys.values() if key.name.startswith("transforms.two.")]
    assert [(key.name, key.group, key.order) for key in added] == [
        ("transforms.two.type", "Transforms: two", 0),
        ("transforms.two.plugin.version", "Transforms: two", 1),
        ("transforms.two.to", "Transforms: two", 2),
        ("transforms.two.negate", "Transforms: two", 3),
        ("transforms.two.predicate", "Transforms: two", 4),
        ("transforms.two.first", "Transforms: two", 5),
    ]
    assert definition.groups[-3:] == ["Transforms: one", "Transforms: two", "Predicates: all"]
    assert errors(definition, config) == {
        "transforms.two.to": ["Invalid value  for configuration to: String must be non-empty"]
    }
    found = definition.validate_all(config)
    assert found["transforms.one.type"].value == "org.example.Rename"
    assert found["transforms.one.plugin.version"].recommended_values == ["1.2.3"]
    assert found["transforms.two.negate"].value is True


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        (
            {},
            {
                "transforms.a.type": 'Missing required configuration "transforms.a.type" which has '
                "no default value."
            },
        ),
        (
            {"transforms.a.type": "Missing"},
            {
                "transforms.a.type": "Invalid value Missing for configuration transforms.a.type: "
                "Class Missing could not be found."
            },
        ),
        (
            {"transforms.a.type": "Always"},
            {
                "transforms.a.type": "Class class org.example.Always does not implement the "
                "Transformation interface"
            },
        ),
        (
            {"transforms.a.type": "org.example.Family"},
            {
                "transforms.a.type": "This class is abstract and cannot be created. Did you mean "
                "org.example.Family$Key?"
            },
        ),
        (
            {"transforms.a.type": "Rename", "transforms.a.to": "x", "transforms.a.negate": "true"},
            {
                "transforms.a.type": "Config 'transforms.a.negate' was provided but there is no "
                "config 'transforms.a.predicate' defining a predicate to be negated."
            },
        ),
    ],
)
def test_a_transform_that_cannot_be_created_is_reported(
    config: dict[str, str], wrong: dict[str, str]
) -> None:
    whole = {**BASE, "transforms": "a", **config}
    definition = enrich(source_definition(PLUGINS), whole, PLUGINS)
    assert errors(definition, whole) == {name: [error] for name, error in wrong.items()}


def test_a_missing_transform_is_an_error_at_once_if_all_are_required() -> None:
    with pytest.raises(ConfigError) as refused:
        enrich(source_definition(), {**BASE, "transforms": "a"}, PLUGINS, require_all=True)
    assert refused.value.message == (
        "Invalid value null for configuration transforms.a.type: Not a Transformation"
    )
