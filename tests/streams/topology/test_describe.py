"""The small rules of a description that golden files show only by chance."""

from streams.describe import java_set_order


def test_names_are_ordered_as_by_a_java_hash_set() -> None:
    # "Aa" and "BB" have one hash in Java: they keep the order they were added in.
    assert java_set_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert java_set_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert java_set_order(["north", "south", "east", "west"]) == ["east", "south", "north", "west"]


def test_a_name_that_comes_twice_is_listed_once() -> None:
    assert java_set_order(["a", "b", "a"]) == ["a", "b"]


def test_many_names_grow_the_table() -> None:
    # Single letters have their code as hash: with enough buckets they come in order.
    letters = [chr(code) for code in range(ord("z"), ord("a") - 1, -1)]
    assert java_set_order(letters) == sorted(letters, key=lambda letter: ord(letter) % 64)
