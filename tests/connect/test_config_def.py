"""Definitions of settings: how strings are parsed, and errors for invalid ones."""

from collections.abc import Mapping, Sequence

import pytest

from connect.config_def import (
    REQUIRED,
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    Importance,
    ListSize,
    NonEmptyList,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNull,
    Password,
    Range,
    Regex,
    Validator,
    ValidList,
    ValidString,
    parse_type,
    text_of,
)
from connect.config_validators import unique_entries
from connect.errors import ConfigError


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.STRING, "  a b\t", "a b"),
        (ConfigType.INT, " +42", 42),
        (ConfigType.INT, "-2147483648", -2147483648),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 9223372036854775807),
        (ConfigType.DOUBLE, "1.5e3d", 1500.0),
        (ConfigType.DOUBLE, 3, 3.0),
        (ConfigType.LIST, "", []),
        (ConfigType.LIST, " a , b,,c ", ["a", "b", "", "c"]),
        (ConfigType.LIST, "a,", ["a", ""]),
        (ConfigType.LIST, ("a", "b"), ["a", "b"]),
        (ConfigType.CLASS, " org.example.Thing ", "org.example.Thing"),
        (ConfigType.PASSWORD, " secret ", Password("secret")),
        (ConfigType.INT, None, None),
    ],
)
def test_a_text_becomes_a_value_of_the_type(type_: ConfigType, text: object, value: object) -> None:
    parsed = parse_type("setting", text, type_)
    assert (type(parsed), parsed) == (type(value), value)


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.BOOLEAN, 1, "Expected value to be either true or false"),
        (ConfigType.INT, "12x", "Not a number of type INT"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, 1.5, "Expected value to be a 32-bit integer, but it was a float"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
        (ConfigType.LONG, "", "Not a number of type LONG"),
        (ConfigType.DOUBLE, "one", "Not a number of type DOUBLE"),
        (ConfigType.STRING, 7, "Expected value to be a string, but it was a int"),
        (ConfigType.PASSWORD, 7, "Expected value to be a string, but it was a int"),
        (ConfigType.LIST, 7, "Expected a comma separated list."),
        (ConfigType.CLASS, 7, "Expected a Class instance or class name."),
    ],
)
def test_a_wrong_value_is_refused_in_kafkas_words(
    type_: ConfigType, value: object, why: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_type("setting", value, type_)
    shown = "1.5" if value == 1.5 else value
    assert refused.value.message == f"Invalid value {shown} for configuration setting: {why}"


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (ConfigType.BOOLEAN, True, "true"),
        (ConfigType.INT, 5, "5"),
        (ConfigType.DOUBLE, 1e10, "1.0E10"),
        (ConfigType.LIST, ["a", "b"], "a,b"),
        (ConfigType.LIST, [], ""),
        (ConfigType.PASSWORD, Password("secret"), "[hidden]"),
        (ConfigType.STRING, None, None),
        (None, "anything", "anything"),
    ],
)
def test_a_value_is_shown_as_the_rest_api_shows_it(
    type_: ConfigType | None, value: object, text: str | None
) -> None:
    assert text_of(value, type_) == text


def test_a_password_never_shows_itself() -> None:
    password = Password("secret")
    assert (str(password), repr(password), f"{password}") == ("[hidden]",) * 3
    assert password.value == "secret"


@pytest.mark.parametrize(
    ("validator", "description", "right", "wrong"),
    [
        (
            Range(1),
            "[1,...]",
            [1, 100],
            {0: "Value must be at least 1", None: "Value must be non-null"},
        ),
        (Range(1, 3), "[1,...,3]", [1, 3], {4: "Value must be no more than 3"}),
        (Range(high=3), "[...,3]", [-9], {4: "Value must be no more than 3"}),
        (Range(), "[...]", [-9], {None: "Value must be non-null"}),
        (
            ValidString("a", "b"),
            "[a, b]",
            ["a"],
            {"A": "String must be one of: a, b", None: "String must be one of: a, b"},
        ),
        (
            CaseInsensitiveValidString("a", "B"),
            "(case insensitive) [A, B]",
            ["A", "b"],
            {"c": "String must be one of (case insensitive): A, B"},
        ),
        (NonEmptyString(), "non-empty string", ["a", None], {"": "String must be non-empty"}),
        (
            NonEmptyStringWithoutControlChars(),
            "non-empty string without ISO control characters",
            ["a b", None],
            {
                "": "String may not be empty",
                "a\nb\x7f": "String may not contain control sequences but had the following "
                "ASCII chars: 10, 127",
            },
        ),
        (NonNull(), "non-null string", ["", 0], {None: "entry must be non null"}),
        (Regex(), "valid regex", ["(a|b)++"], {}),
    ],
)
def test_a_validator_refuses_wrong_values_in_kafkas_words(
    validator: Validator,
    description: str,
    right: Sequence[object],
    wrong: Mapping[object, str],
) -> None:
    assert str(validator) == description
    for value in right:
        validator.ensure_valid("setting", value)
    for value, why in wrong.items():
        with pytest.raises(ConfigError) as refused:
            validator.ensure_valid("setting", value)
        shown = "null" if value is None else value
        assert refused.value.message == f"Invalid value {shown} for configuration setting: {why}"


@pytest.mark.parametrize(
    ("validator", "value", "message"),
    [
        (NonEmptyList(), [], "Invalid value [] for configuration setting: Empty list"),
        (
            ListSize(1),
            ["a", "b"],
            "Invalid value [a, b] for configuration setting: exceeds maximum list size of [1].",
        ),
        (ValidList(), None, "Configuration 'setting' values must not be null."),
        (ValidList(), ["a", ""], "Configuration 'setting' values must not be empty."),
        (ValidList(), ["a", "a"], "Configuration 'setting' values must not be duplicated."),
        (
            ValidList("a", "b"),
            ["c"],
            "Invalid value c for configuration setting: String must be one of: a, b",
        ),
        (
            ValidList("a", empty_allowed=False),
            [],
            "Configuration 'setting' must not be empty. Valid values include: [a]",
        ),
        (
            unique_entries("transformation aliases"),
            ["a", "a"],
            "Invalid value [a, a] for configuration setting: Duplicate alias provided.",
        ),
    ],
)
def test_a_list_with_wrong_entries_is_refused(
    validator: Validator, value: object, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        validator.ensure_valid("setting", value)
    assert refused.value.message == message


def test_an_expression_that_java_would_not_compile_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^Invalid value \(a for configuration p: Invalid regex"):
        Regex().ensure_valid("p", "(a")


def example() -> ConfigDef:
    """Three settings: one must be given, one depends on another."""
    return (
        ConfigDef()
        .define("name", ConfigType.STRING, importance=Importance.HIGH, dependents=["size"])
        .define("size", ConfigType.INT, 10, validator=Range(1), group="Limits", order=1)
        .define("tags", ConfigType.LIST, "a,b", validator=ValidList(), group="Limits", order=0)
    )


def test_parsing_fills_in_the_defaults() -> None:
    assert example().parse({"name": "x", "unknown": "y"}) == {
        "name": "x",
        "size": 10,
        "tags": ["a", "b"],
    }


def test_parsing_stops_at_the_first_wrong_setting() -> None:
    missing = 'Missing required configuration "name" which has no default value.'
    with pytest.raises(ConfigError) as refused:
        example().parse({"size": "zero"})
    assert refused.value.message == missing


def test_repeated_entries_of_a_valid_list_are_dropped_when_it_is_used() -> None:
    assert example().parse({"name": "x", "tags": "b,a,b"})["tags"] == ["b", "a"]


def test_validation_says_all_that_is_wrong() -> None:
    found = example().validate_all({"size": "zero", "tags": "a,a"})
    assert {name: value.errors for name, value in found.items()} == {
        "name": ['Missing required configuration "name" which has no default value.'],
        "size": [
            "Invalid value zero for configuration size: Not a number of type INT",
            "Invalid value null for configuration size: Value must be non-null",
        ],
        "tags": ["Configuration 'tags' values must not be duplicated."],
    }
    assert found["tags"].value == ["a", "a"]
    assert found["size"].value is None


def test_a_dependent_that_is_not_defined_is_an_error() -> None:
    definition = ConfigDef().define("a", ConfigType.STRING, "", dependents=["b"])
    with pytest.raises(ConfigError, match="referred in the dependents, but not defined: b"):
        definition.parse({})
    (_, undefined) = definition.validate({})
    assert undefined.errors == ["b is referred in the dependents, but not defined."]
    assert not undefined.visible


def test_a_setting_is_declared_once_and_its_default_must_be_right() -> None:
    with pytest.raises(ConfigError, match="Configuration name is defined twice"):
        example().define("name", ConfigType.STRING)
    with pytest.raises(ConfigError, match="Value must be at least 1"):
        ConfigDef().define("size", ConfigType.INT, 0, validator=Range(1))


def test_a_class_is_found_by_its_alias() -> None:
    known = {"Thing": "org.example.Thing"}
    definition = ConfigDef(find_class=known.get).define("what", ConfigType.CLASS, None)
    assert definition.parse({"what": "Thing"}) == {"what": "org.example.Thing"}
    assert definition.parse({}) == {"what": None}
    with pytest.raises(ConfigError) as refused:
        definition.parse({"what": "Other"})
    assert refused.value.message == (
        "Invalid value Other for configuration what: Class Other could not be found."
    )


class OnlyWithSize:
    """Offers sizes when there is a name."""

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        return [1, 2] if parsed["name"] else []

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        return parsed["name"] is not None


def test_embedded_settings_know_themselves_without_the_prefix() -> None:
    inner = ConfigDef().define("name", ConfigType.STRING, None)
    inner.define("size", ConfigType.INT, 1, validator=Range(1), recommender=OnlyWithSize())
    inner.define("must", ConfigType.STRING, REQUIRED, importance=Importance.LOW)
    outer = ConfigDef()
    outer.embed("part.", "Part", 5, inner)
    assert [(key.name, key.group, key.order) for key in outer.keys.values()] == [
        ("part.must", "Part", 5),
        ("part.name", "Part", 6),
        ("part.size", "Part", 7),
    ]
    found = outer.validate_all({"part.size": "0", "part.name": "x"})
    assert found["part.size"].recommended_values == [1, 2]
    assert found["part.size"].errors == [
        "Invalid value 0 for configuration size: Value must be at least 1"
    ]
    assert not outer.validate_all({})["part.size"].visible
