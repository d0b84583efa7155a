"""The chain: transforms in their order, each for the records that its predicate chooses."""

import pytest

from connect.api import Transformation
from connect.errors import ConfigError
from connect.plugin_finder import PluginKind
from connect.plugins import Plugins
from connect.records import Header, Record, SinkRecord, SourceRecord
from connect.transforms.chain import ChainedTransform, TransformationChain
from tests.connect.transforms.cases import PLUGINS

PACKAGE = "org.apache.kafka.connect.transforms."


def sink_record(topic: str = "orders", value: object = 1) -> SinkRecord:
    """A record without schemas."""
    return SinkRecord(topic, 0, None, "k", None, value, 5)


def chain(**config: str) -> TransformationChain:
    """The chain of some settings, whose dots are written as double underscores."""
    return TransformationChain.build(
        {name.replace("__", "."): value for name, value in config.items()}, PLUGINS
    )


def test_without_transforms_records_pass_as_they_are() -> None:
    record = sink_record()
    assert chain().apply(record) is record
    assert chain(transforms="").apply(record) is record


def test_transforms_apply_in_the_order_of_their_names() -> None:
    made = chain(
        transforms="wrap, name",
        transforms__name__type=f"{PACKAGE}InsertField$Value",
        transforms__name__topic__field="topic",
        transforms__wrap__type=f"{PACKAGE}HoistField$Value",
        transforms__wrap__field="number",
    )
    changed = made.apply(sink_record())
    assert changed is not None
    assert changed.value == {"number": 1, "topic": "orders"}
    assert isinstance(changed, SinkRecord)
    assert (changed.offset, changed.original_topic) == (5, "orders")
    assert [(each.alias, each.class_name) for each in made.transforms] == [
        ("wrap", f"{PACKAGE}HoistField$Value"),
        ("name", f"{PACKAGE}InsertField$Value"),
    ]


def test_a_dropped_record_reaches_no_further_transform() -> None:
    made = chain(
        transforms="drop,router",
        transforms__drop__type="Filter",
        transforms__router__type="RegexRouter",
        transforms__router__regex="(.*)",
        transforms__router__replacement="$9",
    )
    assert made.apply(sink_record()) is None


@pytest.mark.parametrize(("negate", "dropped"), [(None, True), ("false", True), (" TRUE ", False)])
def test_a_transform_applies_to_what_its_predicate_chooses(
    negate: str | None, dropped: bool
) -> None:
    config = {
        "transforms": "drop",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "marked",
        "predicates": "marked",
        "predicates.marked.type": "HasHeaderKey",
        "predicates.marked.name": "bad",
    }
    if negate is not None:
        config["transforms.drop.negate"] = negate
    made = TransformationChain.build(config, PLUGINS)
    marked = SourceRecord({}, {}, "t", headers=[Header("bad", None, 1)])
    unmarked = SourceRecord({}, {}, "t")
    assert (made.apply(marked) is None) is dropped
    assert (made.apply(unmarked) is None) is not dropped


def test_the_transforms_own_settings_come_without_their_prefix() -> None:
    with pytest.raises(ConfigError) as refused:
        chain(transforms="a", transforms__a__type="RegexRouter", transforms__a__regex="x")
    assert refused.value.message == (
        'Missing required configuration "replacement" which has no default value.'
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"transforms": "a"},
            'Missing required configuration "transforms.a.type" which has no default value.',
        ),
        (
            {"transforms": "a", "transforms.a.type": "Nothing"},
            "Invalid value Nothing for configuration transforms.a.type: "
            "Class Nothing could not be found.",
        ),
        (
            {"transforms": "a", "transforms.a.type": f"{PACKAGE}Cast"},
            "This class is abstract and cannot be created. Did you mean "
            f"{PACKAGE}Cast$Key, {PACKAGE}Cast$Value?",
        ),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"},
            "Unknown configuration 'predicates.p.type'",
        ),
        (
            {
                "transforms": "a",
                "transforms.a.type": "Filter",
                "transforms.a.predicate": "p",
                "predicates": "p",
                "predicates.p.type": "Filter",
            },
            f"Class class {PACKAGE}Filter does not implement the Predicate interface",
        ),
    ],
)
def test_a_chain_that_cannot_be_built_is_reported(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        TransformationChain.build(config, PLUGINS)
    assert refused.value.message == message


class Noted(Transformation):
    """Notes that it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def apply(self, record: Record) -> Record:
        return record

    def close(self) -> None:
        self.closed = True


def test_closing_the_chain_closes_every_transform() -> None:
    transforms = [Noted(), Noted()]
    TransformationChain(tuple(ChainedTransform("a", "A", each) for each in transforms)).close()
    assert [each.closed for each in transforms] == [True, True]


class WithNoted(Plugins):
    """Knows one more transform, and remembers what it made."""

    made: Noted | None = None

    def class_name(self, name: str) -> str | None:
        return name if name == "Noted" else super().class_name(name)

    def find(self, kind: PluginKind, name: str) -> type | None:
        if name != "Noted":
            return super().find(kind, name)
        finder = self

        class Remembered(Noted):
            def __init__(self) -> None:
                super().__init__()
                finder.made = self

        return Remembered


def test_a_chain_that_cannot_be_built_closes_what_it_has_made() -> None:
    plugins = WithNoted(entries=())
    config = {"transforms": "a,b", "transforms.a.type": "Noted", "transforms.b.type": "Nothing"}
    with pytest.raises(ConfigError):
        TransformationChain.build(config, plugins)
    assert plugins.made is not None
    assert plugins.made.closed
