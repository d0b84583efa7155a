"""The cases in `cases/definitions.json` and `cases/validations.json`: settings as Kafka has them.

What a setting is for is said in our own words, so it is not compared; nor are the values offered,
which are the plugins that are there, versions of plugins, and what is wrong with an expression.
"""

from pathlib import Path

import orjson

from connect.api import Predicate, Transformation
from connect.config.answers import config_infos, key_info
from connect.config.connector_config import check_sink, sink_definition, source_definition
from connect.config.enrichment import enrich
from connect.config_def import ConfigDef
from tests.connect.transforms.cases import PLUGINS, plugin
from tests.connect.transforms.notation import Json

FOLDER = Path(__file__).parent / "cases"
DEFINITIONS = FOLDER / "definitions.json"
VALIDATIONS = FOLDER / "validations.json"
OWN_WORDS = ("documentation",)
VERSION = "plugin.version"
EXPRESSION = "Invalid regex: "


def definition_of(name: str) -> ConfigDef:
    """Of sources, of sinks, or of a transform or predicate."""
    if name == "source":
        return source_definition()
    if name == "sink":
        return sink_definition()
    found = plugin(name)
    assert isinstance(found, Transformation | Predicate)
    return found.config()


def facts(name: str) -> Json:
    """What we say of the settings."""
    found = []
    for key in definition_of(name).keys.values():
        valid = "null" if key.validator is None else str(key.validator)
        found.append(without_words({**key_info(key), "valid_values": valid}))
    return found


def without_words(info: Json) -> Json:
    """The definition of a setting without what is not compared."""
    left_out = (*OWN_WORDS, "valid_values") if info["name"].endswith(VERSION) else OWN_WORDS
    return {name: part for name, part in info.items() if name not in left_out}


def validated(kind: str, config: dict[str, str]) -> Json:
    """What we answer to a validation."""
    base = sink_definition() if kind == "sink" else source_definition()
    definition = enrich(base, config, PLUGINS)
    found = definition.validate_all(config)
    if kind == "sink":
        check_sink(config, found)
    name = config.get("connector.class", "")
    infos = config_infos(name, definition.keys, found.values(), definition.groups)
    return compared(infos.as_json())


def compared(infos: Json) -> Json:
    """The errors, groups and settings of an answer: name, order, default, value and errors."""
    return {
        "error_count": infos["error_count"],
        "groups": infos["groups"],
        "configs": [
            [
                each["definition"]["name"],
                each["definition"]["order_in_group"],
                each["definition"]["default_value"],
                each["value"]["value"],
                [_without_reason(error) for error in each["value"]["errors"]],
            ]
            for each in infos["configs"]
            if not each["definition"]["name"].endswith(VERSION)
        ],
    }


def _without_reason(error: str) -> str:
    before, found, _ = error.partition(EXPRESSION)
    return before + found


def read(path: Path) -> Json:
    """What a file holds."""
    return orjson.loads(path.read_bytes())
