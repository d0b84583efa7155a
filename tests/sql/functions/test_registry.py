"""Calls find the overload that they mean."""

from typing import cast

import pytest

from sql.datatypes import BIGINT, BOOLEAN, DOUBLE, INT, STRING, ArrayType, DataType, DecimalType
from sql.errors import StatementFailed
from sql.functions.matching import Argument, LambdaArgument
from sql.functions.registry import (
    AggregateOverload,
    Family,
    FunctionRegistry,
    MakeAggregator,
    Scalar,
    result_of,
)
from sql.functions.signature_text import read_signature

family = Family("TEST")


@family.scalar("F(number INT, text STRING) -> STRING")
@family.scalar("F(number BIGINT, text STRING) -> STRING")
@family.scalar("F(numbers BIGINT...) -> BIGINT")
@family.scalar("SAME(value T, other T) -> T")
@family.scalar("PICK(array ARRAY<T>, choice LAMBDA<T, BOOLEAN>) -> ARRAY<T>")
@family.scalar("ROUNDED(number DECIMAL) -> DECIMAL")
@family.scalar("HALF(number DOUBLE) -> DOUBLE")
@family.scalar("JOINED(first STRING, rest STRING..., last INT) -> STRING")
def anything(*values: object) -> object:
    return values


registry = FunctionRegistry([family])


@pytest.mark.parametrize(
    ("name", "arguments", "signature"),
    [
        ("F", (INT, STRING), "F(INTEGER number, STRING text)"),
        ("F", (BIGINT, STRING), "F(BIGINT number, STRING text)"),
        ("F", (INT, INT, INT), "F(BIGINT... numbers)"),
        ("F", (), "F(BIGINT... numbers)"),
        ("HALF", (DecimalType(3, 1),), "HALF(DOUBLE number)"),
        ("JOINED", (STRING, INT), "JOINED(STRING first, STRING... rest, INTEGER last)"),
        (
            "PICK",
            (ArrayType(INT), LambdaArgument(1)),
            "PICK(ARRAY<T> array, LAMBDA<T, BOOLEAN> choice)",
        ),
    ],
)
def test_the_closest_overload_is_called(
    name: str, arguments: tuple[Argument, ...], signature: str
) -> None:
    overload, _ = registry.resolve(name, arguments)
    assert str(overload.signature) == signature


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("SAME", (INT, BIGINT), BIGINT),
        ("SAME", (INT, None), INT),
        ("PICK", (ArrayType(DOUBLE), LambdaArgument(1)), ArrayType(DOUBLE)),
        ("ROUNDED", (DecimalType(5, 2),), DecimalType(5, 2)),
    ],
)
def test_results_follow_the_arguments(
    name: str, arguments: tuple[Argument, ...], result: DataType
) -> None:
    overload, matched = registry.resolve(name, arguments)
    assert isinstance(overload, Scalar)
    assert result_of(overload, matched, arguments) == result


def test_a_call_that_nothing_takes_names_the_alternatives() -> None:
    with pytest.raises(StatementFailed, match="does not accept parameters \\(BOOLEAN\\)") as caught:
        registry.resolve("HALF", (BOOLEAN,))
    assert "HALF(DOUBLE number)" in str(caught.value)
    with pytest.raises(StatementFailed, match="Can't find any functions with the name 'NONE'"):
        registry.resolve("NONE", ())


def test_a_call_that_two_overloads_take_equally_well_is_ambiguous() -> None:
    unclear = Family("TEST")
    for signature in ("least(a INT, more INT...) -> INT", "least(a BIGINT, more BIGINT...) -> INT"):
        unclear.scalar(signature)(anything)
    known = FunctionRegistry([unclear])
    with pytest.raises(StatementFailed, match="ambiguous method parameters \\(null, null\\)\\."):
        known.resolve("LEAST", (None, None))
    overload, _ = known.resolve("Least", (BIGINT, INT))
    assert "BIGINT a" in str(overload.signature)


def test_texts_are_taken_for_times_but_not_for_numbers() -> None:
    times = Family("TEST")
    times.scalar("later(day DATE) -> DATE")(anything)
    times.scalar("larger(number DOUBLE) -> DOUBLE")(anything)
    known = FunctionRegistry([times])
    known.resolve("LATER", (STRING,))
    with pytest.raises(StatementFailed, match="Function 'larger' does not accept"):
        known.resolve("LARGER", (STRING,))


@pytest.mark.parametrize(
    ("signature", "constants", "arguments", "literals"),
    [
        ("F(value BIGINT) -> BIGINT", 0, 1, 0),
        ("F(value BIGINT, texts STRING..., size INT) -> BIGINT", 1, 5, 1),
        ("F(value BIGINT, size INT, texts STRING...) -> BIGINT", 2, 5, 4),
    ],
)
def test_the_literals_of_an_aggregate_are_its_last_arguments(
    signature: str, constants: int, arguments: int, literals: int
) -> None:
    make = cast(MakeAggregator, anything)
    overload = AggregateOverload(read_signature(signature), make, constants)
    assert overload.literals(arguments) == literals
