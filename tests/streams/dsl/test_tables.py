"""Tables: deletions, old values, stores that come only when needed."""

from collections.abc import Callable
from typing import Any

from broker.serde import LongSerde, StringSerde
from streams import StoreKind, StoreSpec, Stream, StreamsBuilder, Table
from streams.testing import TopologyTestDriver
from streams.topology import Topology
from tests.streams.dsl.running import run
from tests.streams.topology.topologies import first, yes

Users = Table[str, str]


def changes(build: Callable[[Users], Table[str, Any]], inputs: list[tuple[Any, Any]]) -> list[Any]:
    """What comes out of a table made of "in", without times."""

    def topology(builder: StreamsBuilder) -> None:
        build(builder.table("in", key=str, value=str)).to_stream().to("out", key=str, value=str)

    return [(key, value) for key, value, _ in run(topology, inputs)]


def stores(build: Callable[[StreamsBuilder], object]) -> set[str]:
    """The stores of a topology."""
    builder = StreamsBuilder()
    build(builder)
    return set(builder.build().stores)


def starts_with_a(key: str, value: str) -> bool:
    """A predicate."""
    return value.startswith("a")


def test_a_filter_deletes_what_it_does_not_take() -> None:
    inputs = [("k", "apple"), ("k", "pear"), ("j", "pear"), ("k", None)]
    assert changes(lambda users: users.filter(starts_with_a), inputs) == [
        ("k", "apple"),
        ("k", None),
        ("j", None),
        ("k", None),
    ]


def test_a_filter_that_knows_old_values_deletes_only_what_it_told() -> None:
    inputs = [("k", "apple"), ("k", "pear"), ("k", "plum"), ("j", "pear"), ("k", None)]
    kept = changes(lambda users: users.filter(starts_with_a, store="kept").filter(yes), inputs)
    assert kept == [("k", "apple"), ("k", None)]


def test_a_filter_below_a_kept_table_knows_old_values_for_nothing() -> None:
    def build(builder: StreamsBuilder) -> None:
        users = builder.table("in", key=str, value=str, store="users")
        users.filter_not(starts_with_a).to_stream().to("out", key=str, value=str)

    out = run(build, [("k", "apple"), ("k", "pear"), ("k", "apple"), ("k", "apple")])
    assert [(key, value) for key, value, _ in out] == [("k", "pear"), ("k", None)]


def test_map_values_is_not_asked_about_deletions() -> None:
    inputs = [("k", "apple"), ("k", None)]
    assert changes(lambda users: users.map_values(str.upper), inputs) == [
        ("k", "APPLE"),
        ("k", None),
    ]
    with_key = changes(
        lambda users: users.map_values(lambda key, value: key + value, with_key=True), inputs
    )
    assert with_key == [("k", "kapple"), ("k", None)]


def test_records_without_a_key_are_dropped() -> None:
    assert changes(lambda users: users, [(None, "x"), ("k", "y")]) == [("k", "y")]


def test_late_records_change_a_table_all_the_same() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str, store="users").to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("k", "new", 10)
        topic.pipe_input("k", "late", 5)
        assert driver.get_state_store("users").get("k") == ("late", 5)


def test_a_table_gets_a_store_when_something_needs_one() -> None:
    def table(builder: StreamsBuilder) -> Users:
        return builder.table("in", key=str, value=str)

    def clicks(builder: StreamsBuilder) -> Stream[str, str]:
        return builder.stream("clicks", key=str, value=str)

    name = "in-STATE-STORE-0000000000"
    assert stores(lambda b: table(b).filter(yes).map_values(str.upper).to_stream()) == set()
    assert stores(lambda b: clicks(b).to_table().to_stream()) == set()
    assert stores(lambda b: b.table("in", store="mine")) == {"mine"}
    assert stores(lambda b: b.table("in", versioned_history=1000)) == {name}
    # A join looks values up; through a filter, in the table above it.
    users_first = stores(lambda b: (t := table(b).filter(yes), clicks(b).join(t, first)))
    assert users_first == {name}
    # A grouping must know old values.
    grouped = stores(lambda b: table(b).group_by(lambda k, v: (v, k)).count())
    assert grouped == {name, "KTABLE-AGGREGATE-STATE-STORE-0000000004"}


def test_a_store_between_spares_the_one_above() -> None:
    def build(builder: StreamsBuilder) -> None:
        kept = builder.table("in", key=str, value=str).filter(yes, store="kept")
        kept.group_by(lambda key, value: (value, key)).count(store="counts")

    assert stores(build) == {"kept", "counts"}


def test_to_stream_may_choose_other_keys() -> None:
    def build(builder: StreamsBuilder) -> None:
        users = builder.table("in", key=str, value=str)
        users.to_stream(lambda key, value: f"{key}!").to("out", key=str, value=str)

    assert run(build, [("k", "v"), ("k", None)]) == [("k!", "v", 0), ("k!", None, 1)]


def test_a_stream_becomes_a_table_by_its_new_keys() -> None:
    def build(builder: StreamsBuilder) -> None:
        mapped = builder.stream("in", key=str, value=str).select_key(lambda key, value: value[0])
        newest = mapped.to_table(key=str, value=str, store="newest")
        newest.filter(starts_with_a).to_stream().to("out", key=str, value=str)

    out = run(build, [("1", "apple"), ("2", "pear"), ("3", "avocado")])
    assert out == [("a", "apple", 0), ("a", "avocado", 2)]


class Numbered:
    """A transformer that counts in a store how often it was asked."""

    def init(self, context: Any) -> None:
        """Keep the store."""
        self.store = context.store("asked")

    def transform(self, key: str, value: str | None) -> str | None:
        """The value and the count; nothing for a deletion."""
        asked = (self.store.get(key) or 0) + 1
        self.store.put(key, asked)
        return None if value is None else f"{value}{asked}"


def numbered(build: Callable[[StreamsBuilder, Users], object]) -> Topology:
    """A topology with the transformer's store."""
    builder = StreamsBuilder()
    spec = StoreSpec("asked", StoreKind.KEY_VALUE, StringSerde(), LongSerde())
    builder.add_state_store(spec)
    build(builder, builder.table("in", key=str, value=str))
    return builder.build()


def test_a_transformer_has_stores_and_sees_deletions() -> None:
    topology = numbered(
        lambda builder, users: (
            users.transform_values(Numbered, stores=["asked"], value=str).to_stream().to("out")
        )
    )
    with TopologyTestDriver(topology) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for value in ("a", None, "b"):
            topic.pipe_input("k", value)
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_values_to_list() == ["a1", None, "b3"]


def test_a_transformed_table_that_is_not_kept_is_transformed_again_when_looked_up() -> None:
    def build(builder: StreamsBuilder, users: Users) -> None:
        numbers = users.transform_values(Numbered, stores=["asked"], value=str)
        clicks = builder.stream("clicks", key=str, value=str)
        clicks.join(numbers, lambda click, user: f"{click} {user}").to("out", value=str)

    with TopologyTestDriver(numbered(build)) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "a")
        clicks = driver.create_input_topic("clicks", key=str, value=str)
        clicks.pipe_input("k", "x")
        clicks.pipe_input("k", "y")
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_values_to_list() == ["x a2", "y a3"]
