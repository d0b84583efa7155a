"""Definitions and checked settings as the REST API answers them."""

from connect.config.answers import config_infos, key_info, merged_infos, prefixed_infos
from connect.config_def import ConfigDef, ConfigType, ConfigValue, Importance, Range, Width

DEFINITION = (
    ConfigDef()
    .define(
        "size",
        ConfigType.INT,
        5,
        validator=Range(1),
        importance=Importance.LOW,
        doc="How many.",
        group="Limits",
        order=3,
        width=Width.SHORT,
        display_name="Size",
    )
    .define("secret", ConfigType.PASSWORD)
    .define("tags", ConfigType.LIST, ["a", "b"])
)


def test_a_definition_has_kafkas_fields() -> None:
    assert key_info(DEFINITION.keys["size"]) == {
        "name": "size",
        "type": "INT",
        "required": False,
        "default_value": "5",
        "importance": "LOW",
        "documentation": "How many.",
        "group": "Limits",
        "order_in_group": 3,
        "width": "SHORT",
        "display_name": "Size",
        "dependents": [],
    }
    required = key_info(DEFINITION.keys["secret"])
    assert (required["required"], required["default_value"]) == (True, None)
    assert (required["group"], required["order_in_group"], required["width"]) == (None, -1, "NONE")


def test_a_validation_is_answered_in_the_order_of_the_definition() -> None:
    values = DEFINITION.validate({"size": "0", "secret": "x"})
    values.append(ConfigValue("unknown", None, [], ["Null value"]))
    infos = config_infos("Example", DEFINITION.keys, values, DEFINITION.groups)
    answer = infos.as_json()
    assert (answer["name"], answer["error_count"], answer["groups"]) == ("Example", 2, ["Limits"])
    configs = [config.as_json() for config in infos.configs]
    assert configs[0]["definition"] is None
    assert [config["value"] for config in configs[1:]] == [
        {
            "name": "size",
            "value": "0",
            "recommended_values": [],
            "errors": ["Invalid value 0 for configuration size: Value must be at least 1"],
            "visible": True,
        },
        {
            "name": "secret",
            "value": "[hidden]",
            "recommended_values": [],
            "errors": [],
            "visible": True,
        },
        {"name": "tags", "value": "a,b", "recommended_values": [], "errors": [], "visible": True},
    ]
    assert infos.errors == [
        "Null value",
        "Invalid value 0 for configuration size: Value must be at least 1",
    ]


def test_settings_of_a_converter_have_its_prefix_and_count_once() -> None:
    values = DEFINITION.validate({"size": "none"})
    inner = prefixed_infos(DEFINITION.keys, values, "key.converter.")
    assert [config.as_json()["value"]["name"] for config in inner.configs] == [  # type: ignore[index]
        "key.converter.size",
        "key.converter.secret",
        "key.converter.tags",
    ]
    assert inner.error_count == 2
    assert len(inner.errors) == 3
    merged = merged_infos("Example", None, inner, inner)
    assert (merged.name, merged.error_count, merged.groups) == ("Example", 4, ("Limits",))
    assert len(merged.configs) == 6
