"""Users' own functions."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeVar

import pytest

from sql.datatypes import BIGINT, INT, DataType
from sql.errors import SqlError, StatementFailed
from sql.functions.builtin import FAMILIES
from sql.functions.matching import Argument
from sql.functions.registry import (
    AggregateOverload,
    Aggregator,
    Family,
    FunctionRegistry,
    Scalar,
    Settings,
    TableOverload,
    result_of,
)
from sql.functions.user import Digits, family_of, load_functions, udaf, udf, udtf
from tests.sql.functions.calls import type_

T = TypeVar("T")
Money = Annotated[Decimal, Digits(6, 2)]


@udf
def half(number: float) -> float:
    """Half of a number.

    And more that nobody asked about.
    """
    return number / 2


@udf
def repeated(text: str, times: int = 2, *more: str) -> str:
    return text * times + "".join(more)


@udf(description="Text or null.", nulls=True)
def known(value: str) -> bool:
    return value is not None


@udf
def first(array: list[T]) -> T | None:
    return array[0] if array else None


@udf
def shown(value: object) -> str:
    return str(value)


@udf
def price(cents: int) -> Money:
    return Decimal(cents) / 100


@udf
def keys(entries: dict[str, int], missing: str | None) -> list[str]:
    return [*entries, missing or "?"]


@udf("SMALL(number INT) -> INT", volatile=True)
@udf("SMALL(text STRING) -> INT")
def small(value):  # type: ignore[no-untyped-def]
    return len(str(value))


@udtf
def letters(text: str) -> Iterator[str]:
    yield from text


@udtf("PAIRS(a T, b T) -> ARRAY<T>")
def pairs(a, b):  # type: ignore[no-untyped-def]
    return [[a, b], [b, a]]


@udaf
class LongestText:
    """The length of the longest text."""

    def initial(self) -> int:
        return 0

    def add(self, state: int, text: str) -> int:
        return max(state, len(text or ""))

    def merge(self, left: int, right: int) -> int:
        return max(left, right)


@udaf
class Between:
    def __init__(self, low: Annotated[int, INT], *, settings: Settings) -> None:
        self.low = low
        self.step = int(str(settings.get("step", 1)))

    def initial(self) -> list[int]:
        return []

    def add(self, state: list[int], value: int) -> list[int]:
        return [*state, value] if value >= self.low else state

    def undo(self, state: list[int], value: int) -> list[int]:
        return [each for each in state if each != value]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return left + right

    def result(self, state: list[int]) -> str:
        return "-".join(map(str, state[:: self.step]))


@udaf("LAST_OF(value T, others ANY..., size INT) -> ARRAY<T>", state="ARRAY<T>", constants=1)
class LastOf:
    def __init__(self, size: int) -> None:
        self.size = size

    def initial(self) -> list[object]:
        return []

    def add(self, state: list[object], value: object, *others: object) -> list[object]:
        return [*state, value][-self.size :]

    def merge(self, left: list[object], right: list[object]) -> list[object]:
        return (left + right)[-self.size :]


OURS = family_of(
    *(half, repeated, known, first, shown, price, keys, small, letters, pairs),
    *(LongestText, Between, LastOf),
)
REGISTRY = FunctionRegistry([*FAMILIES, OURS])


@pytest.mark.parametrize(
    ("name", "types", "values", "result", "result_type"),
    [
        ("HALF", ["DOUBLE"], [3.0], 1.5, "DOUBLE"),
        ("REPEATED", ["STRING"], ["ab"], "abab", "STRING"),
        ("REPEATED", ["STRING", "BIGINT"], ["ab", 1], "ab", "STRING"),
        ("REPEATED", ["STRING", "INT", "STRING", "STRING"], ["a", 1, "b", "c"], "abc", "STRING"),
        ("KNOWN", ["STRING"], [None], False, "BOOLEAN"),
        ("FIRST", ["ARRAY<DATE>"], [[7]], 7, "DATE"),
        ("SHOWN", ["MAP<STRING, INT>"], [{"a": 1}], "{'a': 1}", "STRING"),
        ("PRICE", ["BIGINT"], [1205], Decimal("12.05"), "DECIMAL(6, 2)"),
        ("KEYS", ["MAP<STRING, BIGINT>", "STRING"], [{"a": 1}, None], ["a", "?"], "ARRAY<STRING>"),
        ("SMALL", ["INT"], [123], 3, "INT"),
        ("SMALL", ["STRING"], ["x"], 1, "INT"),
        ("LETTERS", ["STRING"], ["ab"], ["a", "b"], "STRING"),
        ("PAIRS", ["INT", "INT"], [1, 2], [[1, 2], [2, 1]], "ARRAY<INT>"),
    ],
)
def test_a_function_is_called_by_its_hints_or_its_signature(
    name: str, types: list[str], values: list[object], result: object, result_type: str
) -> None:
    arguments: list[Argument] = [type_(each) for each in types]
    overload, matched = REGISTRY.resolve(name, arguments)
    assert isinstance(overload, Scalar | TableOverload)
    assert overload.call(*values) == result
    assert result_of(overload, matched, arguments) == type_(result_type)


@pytest.mark.parametrize(
    ("name", "nulls"), [("HALF", False), ("KNOWN", True), ("KEYS", True), ("PRICE", False)]
)
def test_nulls_come_only_to_who_wants_them(name: str, nulls: bool) -> None:
    overload = REGISTRY.get(name).overloads[0]
    assert isinstance(overload, Scalar)
    assert overload.nulls is nulls


def test_a_function_is_described_by_its_docstring() -> None:
    assert REGISTRY.get("half").description == "Half of a number."
    assert REGISTRY.get("known").description == "Text or null."
    assert REGISTRY.get("longest_text").description == "The length of the longest text."
    assert {each.category for each in REGISTRY if each.name in OURS.functions} == {"USER"}


def test_a_decimal_that_is_too_large_for_its_type_is_refused() -> None:
    overload, _ = REGISTRY.resolve("PRICE", [BIGINT])
    assert isinstance(overload, Scalar)
    with pytest.raises(ValueError, match=r"10000\.00 does not fit DECIMAL"):
        overload.call(1_000_000)


def made(
    name: str, types: list[str], constants: tuple[object, ...], settings: Settings
) -> tuple[AggregateOverload, Aggregator]:
    arguments: tuple[DataType, ...] = tuple(type_(each) for each in types)
    overload, _ = REGISTRY.resolve(name, arguments)
    assert isinstance(overload, AggregateOverload)
    assert overload.literals(len(types)) == len(constants)
    return overload, overload.make(arguments, constants, settings)


def test_an_aggregate_is_a_class() -> None:
    overload, aggregator = made("LONGEST_TEXT", ["STRING"], (), {})
    assert not overload.undoable
    state = aggregator.add(aggregator.add(aggregator.initial(), "abc"), None)
    assert aggregator.result(aggregator.merge(state, 2)) == 3
    assert aggregator.state_type == aggregator.result_type == type_("BIGINT")


def test_an_aggregate_has_literals_and_settings() -> None:
    overload, aggregator = made("BETWEEN", ["BIGINT", "INT"], (5,), {"step": "2"})
    assert overload.undoable
    assert aggregator.state_type == type_("ARRAY<BIGINT>")
    state = aggregator.initial()
    for value in (4, 5, 6, 7):
        state = aggregator.add(state, value)
    assert aggregator.result(state) == "5-7"


def test_the_types_of_an_aggregate_follow_its_arguments() -> None:
    _, aggregator = made("LAST_OF", ["DATE", "STRING", "BOOLEAN", "INT"], (1,), {})
    assert aggregator.state_type == aggregator.result_type == type_("ARRAY<DATE>")
    assert aggregator.add([1], 2, "a", True) == [2]


def test_all_functions_of_a_folder_are_loaded(tmp_path: Path) -> None:
    head = "from sql.functions.user import udf\n@udf\n"
    (tmp_path / "a.py").write_text(f"{head}def one() -> int: return 1\n")
    (tmp_path / "b.py").write_text(f"{head}def two() -> int: return 2\nudf_like = one = 3\n")
    (tmp_path / "_skipped.py").write_text("raise SystemError\n")
    assert sorted(load_functions(tmp_path).functions) == ["ONE", "TWO"]
    assert sorted(load_functions(str(tmp_path / "a.py")).functions) == ["ONE"]


def test_a_file_may_have_whatever_modules_have(tmp_path: Path) -> None:
    for folder, number in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "same.py"
        file.write_text(
            "from __future__ import annotations\n"
            "from dataclasses import dataclass\n"
            "from sql.functions.user import udf\n"
            f"@dataclass\nclass Number:\n  value: int = {number}\n"
            f"@udf\ndef number_{number}() -> int: return Number().value\n"
        )
        overload = load_functions(file).functions[f"NUMBER_{number}"].overloads[0]
        assert isinstance(overload, Scalar)
        assert overload.call() == number


def test_all_functions_of_a_module_are_taken() -> None:
    module = ModuleType("ours")
    vars(module).update(half=half, other=3, LongestText=LongestText)
    assert sorted(family_of(module).functions) == ["HALF", "LONGEST_TEXT"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise KeyError('x')", "cannot load the functions of .*KeyError: 'x'"),
        ("def (", "cannot load the functions of .*SyntaxError"),
        ("@udf\ndef f(a): return a", 'cannot use function "f" of .*result has no type hint'),
        ("@udf\ndef f(a) -> int: return a", '"f" of .*parameter "a" has no type hint'),
        ("@udf\ndef f(*, a: int) -> int: return a", 'parameter "a" can only be given by its name'),
        ("@udf\ndef f(a: set) -> int: return a", "no SQL type matches the type hint set"),
        ("@udf\ndef f(a: 'Missing') -> int: return a", "'Missing' is not defined"),
        ("@udf('F(a WHAT) -> INT')\ndef f(a): return a", '"WHAT" is not a type'),
        ("@udf\ndef f(a: int) -> int: return a\n@udf('F(a BIGINT) -> INT')\ndef g(a): return a",
         'cannot use function "g" of .*another function takes the same arguments'),
        ("@udtf\ndef f(a: int) -> int: return a", "a table function must return a list"),
        ("@udaf\nclass F:\n  def initial(self) -> int: return 0", "no method add and no merge"),
        ("@udaf('F(a INT) -> INT')\nclass F:\n  initial = add = merge = print", "state="),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "ours.py"
    file.write_text(f"from sql.functions.user import udaf, udf, udtf\n{text}\n")
    with pytest.raises(SqlError, match=why) as caught:
        load_functions(file)
    assert "ours.py" in str(caught.value)


def test_there_must_be_something_to_load(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=r"cannot load functions: .* does not exist"):
        load_functions(tmp_path / "none")
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(SqlError, match="is not a Python file"):
        load_functions(tmp_path / "text.txt")


def test_a_users_function_does_not_replace_a_built_in_one() -> None:
    mine = Family("USER")
    mine.scalar("ABS(number INT) -> INT")(abs)
    with pytest.raises(SqlError, match='function "ABS" is defined twice'):
        FunctionRegistry([*FAMILIES, mine])


def test_a_type_that_nothing_says_is_refused() -> None:
    overload = REGISTRY.get("LAST_OF").overloads[0]
    assert isinstance(overload, AggregateOverload)
    with pytest.raises(StatementFailed, match="is not known"):
        overload.make((), (1,), {})
