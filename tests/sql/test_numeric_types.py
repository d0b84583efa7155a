"""Numbers made to fit the types of columns."""

from decimal import Decimal

import pytest

from sql.datatypes import DecimalType
from sql.numeric_types import fit_decimal, parse_decimal


@pytest.mark.parametrize(
    ("text", "fitting"),
    [("1", "1.00"), ("-1.5", "-1.50"), ("1E1", "10.00"), ("99.99", "99.99"), ("-0", "0.00")],
)
def test_decimals_get_the_scale_of_their_type(text: str, fitting: str) -> None:
    found = parse_decimal(text, DecimalType(4, 2))
    assert found.as_tuple() == Decimal(fitting).as_tuple()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("100", "too large"),
        ("1E999999999", "too large"),
        ("1.234", "without rounding"),
        ("1E-999999999", "without rounding"),
        ("NaN", "not a number"),
        ("Infinity", "not a number"),
        (" 1", "not a number"),
        ("1_0", "not a number"),
        ("", "not a number"),
    ],
)
def test_decimals_that_do_not_fit_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_decimal(text, DecimalType(4, 2))


def test_numbers_that_are_none_fit_no_decimal() -> None:
    for number in ("NaN", "sNaN", "Infinity"):
        with pytest.raises(ValueError, match="number"):
            fit_decimal(Decimal(number), DecimalType(4, 2))
