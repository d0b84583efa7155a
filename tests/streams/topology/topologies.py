"""Topologies whose descriptions are kept as golden files: one function each, named as its file."""

import re
from collections.abc import Callable

from streams import (
    Processor,
    Record,
    StoreKind,
    StoreSpec,
    StreamsBuilder,
    TopologyBuilder,
    hopping,
    join_within,
    session,
    sliding,
    stored,
    tumbling,
    until_time_limit,
    until_window_closes,
)
from streams.topology import Topology

ALL: dict[str, Callable[[], Topology]] = {}


def golden(make: Callable[[], Topology]) -> Callable[[], Topology]:
    """Register a topology under the name of its function."""
    ALL[make.__name__] = make
    return make


class Drop(Processor[str, str, str, str]):
    """Does nothing."""

    def process(self, record: Record[str, str]) -> None:
        """Nothing."""


class Same:
    """A transformer that changes nothing."""

    def transform(self, key: object, value: object) -> object:
        """The value."""
        return value


def yes(key: object, value: object) -> bool:
    """A predicate."""
    return True


def first(one: str, other: str | None) -> str:
    """A joiner."""
    return one


def either(one: str, other: int) -> str:
    """Another joiner."""
    return one


def last(key: str, value: str, aggregate: str) -> str:
    """An adder."""
    return value


def swap(key: str, value: str) -> tuple[str, str]:
    """A change of keys."""
    return value, key


@golden
def one_source() -> Topology:
    """A source and nothing else."""
    builder = StreamsBuilder()
    builder.stream("clicks")
    return builder.build()


@golden
def stateless_operations() -> Topology:
    """Every stateless operation takes one number, in the order of calls."""
    builder = StreamsBuilder()
    words = builder.stream("lines", key=str, value=str)
    words = words.filter(yes).filter_not(yes).map(swap).map_values(str.upper)
    words = words.flat_map(lambda key, value: [(key, value)]).flat_map_values(str.split)
    words = words.select_key(lambda key, value: value).peek(yes)
    words.foreach(yes)
    words.print_()
    words.to("words")
    return builder.build()


@golden
def named_operations() -> Topology:
    """Names replace generated ones; the numbers of the others stay."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str, name="read-lines")
    lines.filter(yes, name="long-ones").map_values(str.upper).to("loud", name="write")
    return builder.build()


@golden
def several_topics_and_a_pattern() -> Topology:
    """One source may read several topics, or whatever matches."""
    builder = StreamsBuilder()
    builder.stream(["north", "south", "east", "west"]).to("all")
    builder.stream(re.compile("sensor-.*")).to("sensors")
    return builder.build()


@golden
def equal_sources_are_one() -> Topology:
    """Streams of the same topic share a source."""
    builder = StreamsBuilder()
    builder.stream("orders").to("copy")
    builder.stream("orders").filter(yes).to("some")
    return builder.build()


@golden
def branches() -> Topology:
    """A split has a node of its own, and one for each branch."""
    builder = StreamsBuilder()
    split = builder.stream("orders", key=str, value=str).split()
    parts = split.branch(yes).branch(yes, name="-small").default_branch()
    for number, part in enumerate(parts.values()):
        part.to(f"part-{number}")
    return builder.build()


@golden
def named_branches() -> Topology:
    """Names of branches begin with that of the split."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str)
    parts = orders.split(name="by-size-").branch(yes, name="big").default_branch(name="rest")
    parts["by-size-big"].to("big-orders")
    parts["by-size-rest"].to("other-orders")
    return builder.build()


@golden
def merged_streams() -> Topology:
    """A merge unites what would be two sub-topologies."""
    builder = StreamsBuilder()
    builder.stream("north").merge(builder.stream("south")).to("all")
    return builder.build()


@golden
def explicit_repartition() -> Topology:
    """Every repartition() is a topic, even side by side."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str)
    orders.repartition().to("a")
    orders.repartition(name="by-user", partitions=6).to("b")
    return builder.build()


@golden
def table_that_nobody_keeps() -> Topology:
    """A table has no store until something needs one; its name takes a number all the same."""
    builder = StreamsBuilder()
    builder.table("users", key=str, value=str).filter(yes).to_stream().to("some-users")
    return builder.build()


@golden
def table_with_named_stores() -> Topology:
    """A store's name makes it queryable, and keeps it."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str, store="users-store", name="users-table")
    users.filter(yes, store="adults").map_values(str.upper, store="loud").to_stream().to("out")
    return builder.build()


@golden
def options_without_a_name_burn_a_number() -> Topology:
    """Serdes for filter or map_values of a table cost a number, as in the original."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    users.filter(yes, value=str).map_values(len, value=int).to_stream().to("out")
    return builder.build()


@golden
def transformed_table() -> Topology:
    """A transformer's stores are connected to it."""
    builder = StreamsBuilder()
    builder.add_state_store(StoreSpec("seen", StoreKind.KEY_VALUE))
    users = builder.table("users", key=str, value=str)
    users.transform_values(Same, stores=["seen"]).to_stream().to("out")
    return builder.build()


@golden
def stream_to_table() -> Topology:
    """to_table keeps no store by itself; changed keys are repartitioned first."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    lines.to_table().to_stream().to("newest")
    lines.map(swap).to_table(store="by-value").to_stream().to("newest-by-value")
    return builder.build()


@golden
def user_processors() -> Topology:
    """Processors with stores: one added before, one with its own."""
    builder = StreamsBuilder()
    builder.add_state_store(StoreSpec("shared", StoreKind.KEY_VALUE))
    lines = builder.stream("lines", key=str, value=str)
    own = StoreSpec("own", StoreKind.KEY_VALUE)
    lines.process(Drop, stores=["shared"]).to("a")
    lines.process_values(Drop, stores=["shared", own], name="check").to("b")
    return builder.build()


@golden
def shared_store_unites_sub_topologies() -> Topology:
    """Two sources whose processors share a store run together."""
    builder = StreamsBuilder()
    builder.add_state_store(StoreSpec("shared", StoreKind.KEY_VALUE))
    builder.stream("north", key=str, value=str).process(Drop, stores=["shared"])
    builder.stream("other").to("copy")
    builder.stream("south", key=str, value=str).process(Drop, stores=["shared"])
    return builder.build()


@golden
def global_table_and_store() -> Topology:
    """Global stores are counted among the sub-topologies."""
    builder = StreamsBuilder()
    countries = builder.global_table("countries", key=str, value=str)
    spec = StoreSpec("rates", StoreKind.KEY_VALUE)
    builder.add_global_store(spec, "rates-topic", Drop)
    orders = builder.stream("orders", key=str, value=str)
    joined = orders.join(countries, lambda order, name: order, key_mapper=lambda key, order: order)
    joined.to("enriched")
    return builder.build()


@golden
def word_count() -> Topology:
    """The first example of every book."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    words = lines.flat_map_values(str.split).group_by(lambda key, word: word)
    words.count(store="counts-store").to_stream().to("counts")
    return builder.build()


@golden
def windowed_aggregates() -> Topology:
    """Windows add no node; names are those of the operation."""
    builder = StreamsBuilder()
    grouped = builder.stream("clicks", key=str, value=str).group_by_key()
    grouped.windowed_by(tumbling(1000)).count().to_stream().to("tumbling")
    grouped.windowed_by(hopping(1000, 100)).reduce(max).to_stream().to("hopping")
    sessions = grouped.windowed_by(session(1000)).count(store="sessions")
    sessions.suppress(until_window_closes()).to_stream().to("final")
    return builder.build()


@golden
def grouped_table() -> Topology:
    """Rows of a table are grouped through a topic."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    users.group_by(lambda key, value: (value, key)).count().to_stream().to("per-city")
    return builder.build()


@golden
def named_aggregates() -> Topology:
    """The name of the grouping names the topic, that of the operation its node."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str)
    grouped = orders.group_by(lambda key, value: value, name="by-value")
    grouped.count(name="counted").to_stream(name="counts").to("a")
    grouped.aggregate(str, lambda key, value, all_: all_, name="listed", store="lists")
    orders.group_by_key().reduce(max, key=str, value=str).to_stream().to("b")
    return builder.build()


@golden
def cogrouped() -> Topology:
    """Several groupings, one store."""
    builder = StreamsBuilder()
    one = builder.stream("one", key=str, value=str).group_by_key()
    two = builder.stream("two", key=str, value=str).group_by(lambda key, value: value)
    both = one.cogroup(last).cogroup(two, last)
    both.aggregate(str).to_stream().to("out")
    return builder.build()


@golden
def windowed_cogrouped() -> Topology:
    """The same by sliding windows, with names."""
    builder = StreamsBuilder()
    one = builder.stream("one", key=str, value=str).group_by_key()
    windowed = one.cogroup(last).windowed_by(sliding(1000))
    windowed.aggregate(str, name="both", store="both-store").to_stream().to("out")
    return builder.build()


@golden
def named_suppress() -> Topology:
    """The name of a suppress names its store too."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    users.suppress(until_time_limit(1000, name="wait")).to_stream().to("out")
    return builder.build()


@golden
def grouped_table_with_names() -> Topology:
    """Names of grouping, operation and store."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    grouped = users.group_by(lambda key, value: (value, key), name="by-city")
    counted = grouped.aggregate(str, last, last, name="cities", store="cities-store")
    counted.to_stream().to("per-city")
    return builder.build()


@golden
def stream_joins() -> Topology:
    """Two windows, two joins, one merge; changed keys are repartitioned."""
    builder = StreamsBuilder()
    left = builder.stream("orders", key=str, value=str).map(swap)
    right = builder.stream("payments", key=str, value=str)
    left.join(right, lambda a, b: a, join_within(1000)).to("inner")
    left.left_join(right, lambda a, b: a, join_within(1000), name="paid").to("left")
    return builder.build()


@golden
def named_joins() -> Topology:
    """The name of a join is the base of those of its nodes, topics and, if it must, its stores."""
    builder = StreamsBuilder()
    left = builder.stream("orders", key=str, value=str).select_key(lambda key, value: value)
    right = builder.stream("payments", key=str, value=str).map(swap)
    users = builder.table("users", key=str, value=str)
    within = join_within(1000)
    left.outer_join(right, first, within, name="paid", store_name="kept").to("outer")
    left.left_join(users, first, name="who").to("left")
    cities = builder.table("cities", key=str, value=str)
    both = users.outer_join(cities, first, name="both", store="both-store")
    both.to_stream(name="both-stream").to("tables")
    return builder.build()


@golden
def foreign_key_join_with_a_store() -> Topology:
    """The name of a foreign-key join names its two topics too."""
    builder = StreamsBuilder()
    cities = builder.table("cities", key=str, value=str)
    users = builder.table("users", key=str, value=str)
    joined = users.join(
        cities, first, foreign_key=lambda user: user, name="in-city", store="users-in-cities"
    )
    joined.to_stream(lambda key, value: value, name="out-stream").to("out")
    return builder.build()


@golden
def join_of_derived_tables() -> Topology:
    """A table that is not kept is looked up in the one above it."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str).filter(yes)
    cities = builder.table("cities", key=str, value=str).map_values(str.upper)
    users.left_join(cities, first).to_stream().to("out")
    return builder.build()


@golden
def join_with_grace() -> Topology:
    """A stream that waits for a versioned table has a buffer."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str, store="users-store", versioned_history=60000)
    clicks = builder.stream("clicks", key=str, value=str)
    clicks.join(users, first, grace=1000, name="late").to("out")
    return builder.build()


@golden
def several_joins_of_one_mapped_stream() -> Topology:
    """Unnamed joins share one repartition topic."""
    builder = StreamsBuilder()
    mapped = builder.stream("orders", key=str, value=str).map(swap)
    mapped.join(builder.table("users", key=str, value=str), first).to("a")
    mapped.left_join(builder.table("cities", key=str, value=str), first).to("b")
    return builder.build()


@golden
def stream_table_join() -> Topology:
    """The join looks values up, so the table is kept."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    builder.stream("clicks", key=str, value=str).join(users, lambda a, b: a).to("out")
    return builder.build()


@golden
def table_joins() -> Topology:
    """Joins by key, and by foreign key."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    cities = builder.table("cities", key=str, value=str)
    users.join(cities, lambda a, b: a).to_stream().to("by-key")
    users.left_join(cities, lambda a, b: a, foreign_key=lambda user: user).to_stream().to("by-city")
    return builder.build()


def _reused_source(optimize: bool) -> Topology:
    builder = StreamsBuilder()
    builder.table("users", key=str, value=str, store="users-store").to_stream().to("out")
    return builder.build(optimize)


@golden
def source_topic_as_changelog() -> Topology:
    """The description is the same; what differs is the changelog."""
    return _reused_source(optimize=True)


def changed_keys(optimize: bool) -> Topology:
    """One change of keys above three repartitions, one of them behind a change of values."""
    builder = StreamsBuilder()
    mapped = builder.stream("orders", key=str, value=str).map(swap)
    mapped.group_by_key(name="totals").count().to_stream().to("totals-out")
    mapped.filter(yes).peek(yes).group_by_key().reduce(max).to_stream().to("largest")
    mapped.map_values(len).group_by_key(value=int).count().to_stream().to("lengths")
    return builder.build(optimize)


@golden
def repartitions_apart() -> Topology:
    """Without optimisation every grouping has its own topic."""
    return changed_keys(optimize=False)


@golden
def repartitions_merged() -> Topology:
    """With it, those that see the same values share one."""
    return changed_keys(optimize=True)


@golden
def repartition_below_a_merge() -> Topology:
    """Two changes of keys, merged: the one topic is below the merge."""
    builder = StreamsBuilder()
    one = builder.stream("one", key=str, value=str).map(swap)
    two = builder.stream("two", key=str, value=str).map(swap)
    merged = one.merge(two)
    merged.group_by_key().count().to_stream().to("counts")
    merged.filter(yes).group_by_key().reduce(max).to_stream().to("largest")
    return builder.build(optimize=True)


@golden
def stream_joined_with_itself() -> Topology:
    """One window instead of two."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str)
    orders.join(orders, lambda a, b: a, join_within(1000)).to("pairs")
    return builder.build(optimize=True)


@golden
def one_stream_read_twice_and_joined() -> Topology:
    """Two reads of a topic are one stream, so this joins a stream with itself too."""
    builder = StreamsBuilder()
    one = builder.stream("orders", key=str, value=str)
    two = builder.stream("orders", key=str, value=str)
    one.join(two, first, join_within(1000), name="pairs").to("pairs-out")
    return builder.build(optimize=True)


@golden
def self_join_after_another_use() -> Topology:
    """Other uses of the stream are of no account."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str)
    orders.filter(yes).to("some")
    orders.join(orders, first, join_within(1000)).to("pairs")
    return builder.build(optimize=True)


@golden
def optimised_joins_and_tables() -> Topology:
    """One repartition serves grouping, joins and to_table."""
    builder = StreamsBuilder()
    mapped = builder.stream("orders", key=str, value=str).map(swap)
    counts = mapped.group_by_key(name="counted").count().to_stream()
    pairs = mapped.filter(yes).join(counts, either, join_within(1000), name="joined")
    pairs.to("out")
    users = builder.table("users", key=str, value=str)
    mapped.left_join(users, first).to("with-users")
    mapped.peek(yes).to_table(store="newest").to_stream().to("newest-out")
    return builder.build(optimize=True)


@golden
def optimised_merges() -> Topology:
    """Values change between the key and the merges: the topics stay below."""
    builder = StreamsBuilder()
    mapped = builder.stream("orders", key=str, value=str).select_key(lambda key, value: value)
    one, two, three = (mapped.map_values(str.upper) for _ in range(3))
    merged = one.merge(two).merge(three)
    merged.group_by_key().count().to_stream().to("counts")
    return builder.build(optimize=True)


@golden
def optimised_merge_of_one_changed_side() -> Topology:
    """One side has changed keys, the other has not."""
    builder = StreamsBuilder()
    changed = builder.stream("one", key=str, value=str).map(swap)
    merged = builder.stream("two", key=str, value=str).merge(changed)
    merged.group_by_key(name="both").count().to_stream().to("counts")
    return builder.build(optimize=True)


@golden
def optimised_cogroup() -> Topology:
    """Cogrouped streams below one change of keys."""
    builder = StreamsBuilder()
    mapped = builder.stream("one", key=str, value=str).map(swap)
    one, two = mapped.group_by_key(), mapped.filter(yes).group_by_key()
    one.cogroup(last).cogroup(two, last).aggregate(str).to_stream().to("out")
    return builder.build(optimize=True)


@golden
def chained_repartitions() -> Topology:
    """Each change of keys has its own topic, also when one follows the other."""
    builder = StreamsBuilder()
    once = builder.stream("one", key=str, value=str).map(swap)
    counted = once.group_by_key(name="first").count().to_stream()
    again = counted.map_values(str, name="text").select_key(lambda key, value: value)
    again.group_by_key(name="second").count().to_stream().to("out")
    return builder.build(optimize=True)


@golden
def made_by_hand() -> Topology:
    """The Processor API: names are the user's, nodes are ordered by what hangs below them."""
    builder = TopologyBuilder()
    builder.add_source("orders", ["orders-eu", "orders-us"])
    builder.add_processor("check", Drop, "orders")
    builder.add_processor("count", Drop, "check", stores=[StoreSpec("n", StoreKind.KEY_VALUE)])
    builder.add_sink("good", "good-orders", ["check", "count"])
    builder.add_sink("chosen", choose_topic, "check")
    return builder.build()


def choose_topic(*record: object) -> str:
    """A topic for each record."""
    return "somewhere"


@golden
def stored_options() -> Topology:
    """One value for the options of several tables."""
    builder = StreamsBuilder()
    quiet = stored("quiet", caching=False, logging=False)
    builder.stream("orders", key=str, value=str).group_by_key().count(store=quiet)
    return builder.build()
