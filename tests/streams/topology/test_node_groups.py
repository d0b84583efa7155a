"""NodeGroups against a plain computation of connected nodes."""

from hypothesis import given
from hypothesis import strategies as st

from streams.node_groups import NodeGroups

NAMES = [f"n{number}" for number in range(5)]
pairs = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=6)


def connected(united: list[tuple[str, str]]) -> list[frozenset[str]]:
    """Groups by repeated walking, in the order of their first names."""
    groups: list[frozenset[str]] = []
    for name in NAMES:
        reached = {name}
        while more := {
            end for pair in united for end in pair if set(pair) & reached and end not in reached
        }:
            reached |= more
        if frozenset(reached) not in groups:
            groups.append(frozenset(reached))
    return groups


@given(pairs)
def test_united_nodes_have_one_number_in_the_order_of_adding(
    united: list[tuple[str, str]],
) -> None:
    groups = NodeGroups()
    for name in NAMES:
        groups.add(name)
    for one, other in united:
        groups.unite(one, other)
    expected = connected(united)
    assert [members for _, members in groups.numbered()] == expected
    assert all(name in expected[groups.number(name)] for name in NAMES)
