"""Names: the counter, and what a user may choose."""

import pytest

from streams import StreamsBuilder
from streams.dsl.names import Names, check_name, is_generated
from streams.errors import TopologyError


def test_numbers_are_counted_over_all_prefixes() -> None:
    names = Names()
    assert names.new("KSTREAM-MAP-") == "KSTREAM-MAP-0000000000"
    assert names.new_store("topic-") == "topic-STATE-STORE-0000000001"
    assert names.node(None, "KSTREAM-PEEK-") == "KSTREAM-PEEK-0000000002"


def test_a_name_of_the_user_takes_a_number_too() -> None:
    names = Names()
    assert names.node("mine", "KSTREAM-MAP-", suffix="-source") == "mine-source"
    assert names.new("KSTREAM-MAP-") == "KSTREAM-MAP-0000000001"


def test_only_names_of_streams_that_end_with_a_number_count_as_generated() -> None:
    assert is_generated("KSTREAM-AGGREGATE-STATE-STORE-0000000003")
    assert not is_generated("KTABLE-AGGREGATE-STATE-STORE-0000000003")
    assert not is_generated("KSTREAM-MAP-0000000001-repartition")
    assert not is_generated("orders")


@pytest.mark.parametrize("name", ["", ".", "..", "two words", "a/b", "ü", "a" * 250])
def test_a_name_that_could_be_no_topic_is_refused(name: str) -> None:
    with pytest.raises(TopologyError):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "a" * 249])
def test_a_name_like_a_topic_is_allowed(name: str) -> None:
    assert check_name(name) == name


def test_a_name_that_is_too_long_with_its_suffix_is_refused() -> None:
    with pytest.raises(TopologyError, match="256 characters"):
        StreamsBuilder().table("users", name="a" * 249)
