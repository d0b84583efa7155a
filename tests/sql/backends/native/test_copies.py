"""Copies: equal to their values, and nothing of them is shared that can change."""

from hypothesis import given
from hypothesis import strategies as st

from sql.backends.native.copies import copying
from sql.datatypes import STRING
from tests.sql.backends.native.test_rows import PRIMITIVES, types, values


def shared(left: object, right: object) -> bool:
    """Whether two values have a list or dict in common."""
    match left, right:
        case (list(), list()):
            return left is right or any(map(shared, left, right))
        case (dict(), dict()):
            return left is right or any(map(shared, left.values(), right.values()))
        case _:
            return False


@given(st.data())
def test_a_copy_is_equal_and_shares_nothing(data: st.DataObject) -> None:
    type_ = data.draw(types())
    value = data.draw(values(type_))
    copy = copying(type_)
    if copy is None:
        assert type_ in PRIMITIVES
        return
    copied = copy(value)
    assert copied == value
    assert not shared(copied, value)


def test_what_cannot_change_needs_no_copy() -> None:
    assert copying(STRING) is None
