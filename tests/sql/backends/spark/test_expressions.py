"""Expressions that Spark computes itself give what our own functions give."""

import unicodedata
from functools import cache

# Spark's sessions are Any: PySpark need not be there.
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="Spark's own tests: install pyspark, pandas<3 and pyarrow")

import pyarrow as pa

from sql.backends.spark.expressions import is_native, spark_text
from sql.backends.spark.functions import FUNCTIONS
from sql.backends.spark.spark_code import NotNative
from tests.sql.backends.native.random_expressions import condition, expressions
from tests.sql.backends.spark.equal_columns import NAMES, differences, native, typed
from tests.sql.backends.spark.native_calls import CALLS, CASTS, CONDITIONS
from tests.sql.backends.spark.random_rows import random_rows
from tests.support.spark import MARKS, shared_session

ROWS = 300
# Settings that change what texts of SQL mean, or what becomes of errors.
OTHER_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.codegen.wholeStage": "false",
}
NOT_NATIVE = (
    "SIN(D)", "LN(D)", "POWER(D, D2)", "ROUND(D, 2)", "N / N2", "D < N", "Y < Y",
    "S LIKE S2", "CAST(D AS STRING)", "CAST(S AS DECIMAL(4, 2))", "CAST(S AS TIMESTAMP)",
    "MAP(S := I)", "A = A", "M = M", "D IN (D2)", "RANDOM()", "UUID()", "UNIX_TIMESTAMP()",
    "REDUCE(A, 0, (s, x) => s + x)", "REPLACE(S, '', 'x')", "REPLACE(S, S2, 'x')", "SPLIT(S, '')",
    "INITCAP(S)", "GREATEST(D, D2)", "GREATEST(S, S2)", "ARRAY_CONTAINS(ARRAY[D], D2)",
    "FORMAT_TIMESTAMP(TS, 'yyyy')", "CAST(N AS DECIMAL(39, 2))",
)  # fmt: skip


@pytest.fixture(scope="module")
def spark() -> Any:
    """The session of all tests."""
    return shared_session()


@cache
def random_texts(count: int) -> tuple[str, ...]:
    """Expressions that hypothesis makes up, the same ones each time."""
    found: list[str] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(expressions(2), condition(3)))
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return tuple(dict.fromkeys(found))


def all_calls() -> list[str]:
    return [text for texts in CALLS.values() for text in texts]


def test_all_functions_of_the_table_are_called() -> None:
    assert set(CALLS) == set(FUNCTIONS)
    texts = [*all_calls(), *CASTS, *CONDITIONS]
    assert set(native(texts)) == set(texts)
    for name, rules in FUNCTIONS.items():
        kinds = [node.type and _types(text) for text in CALLS[name] if (node := typed(text))]
        for rule in rules:
            assert any(kind and rule.fits(kind) for kind in kinds), (name, rule)


def _types(text: str) -> Any:
    node = typed(text)
    return tuple(each.type for each in getattr(node, "arguments", ()))


@pytest.mark.parametrize("text", NOT_NATIVE)
def test_what_is_not_equal_is_left_to_our_own_functions(text: str) -> None:
    node = typed(text)
    assert node is not None
    assert not is_native(node)
    with pytest.raises(NotNative):
        spark_text(node, NAMES)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("I + 1 > 5", "(CAST(shiftright(shiftleft((CAST(`c0` AS BIGINT) + CAST(1 AS BIGINT)), 32),"
                      " 32) AS INT) > 5)"),
        ("S = 'it''s'", "coalesce((`c4` = CAST(X'69742773' AS STRING)), FALSE)"),
        ("S IS NULL OR B", "((`c4` IS NULL) OR `c5`)"),
        ("LCASE(CAST(5 AS STRING))", "'5'"),
        ("-5", "CAST('-5' AS INT)"),
        ("S LIKE 'a\\_%'", "like(`c4`, CAST(X'615c5f25' AS STRING), '!')"),
    ],
)  # fmt: skip
def test_the_text_of_an_expression(text: str, wanted: str) -> None:
    node = typed(text)
    assert node is not None
    assert spark_text(node, NAMES) == wanted


def test_an_expression_that_would_grow_without_end_is_not_native() -> None:
    text = "S"
    for _ in range(12):
        text = f"SUBSTRING({text}, I, I2)"
    node = typed(text)
    assert node is not None
    assert not is_native(node)


class TestOnSpark:
    """One job for each test."""

    pytestmark = MARKS

    def test_one_call_of_each_function_is_equal(self, spark: Any) -> None:
        texts = [texts[0] for texts in CALLS.values()]
        assert differences(spark, native(texts), random_rows(ROWS)) == []

    @pytest.mark.long
    def test_functions_casts_and_operators_are_equal(self, spark: Any) -> None:
        texts = [*all_calls(), *CASTS, *CONDITIONS]
        assert differences(spark, native(texts), random_rows(ROWS)) == []

    @pytest.mark.parametrize("count", [60, pytest.param(250, marks=pytest.mark.long)])
    def test_random_expressions_are_equal(self, spark: Any, count: int) -> None:
        texts = random_texts(count)
        found = native(texts)
        assert len(found) > len(texts) / 3
        assert differences(spark, found, random_rows(ROWS, seed=7)) == []

    @pytest.mark.long
    def test_settings_of_a_session_change_nothing(self, spark: Any) -> None:
        other = spark.newSession()
        for name, value in OTHER_SETTINGS.items():
            other.conf.set(name, value)
        texts = [*all_calls(), *CASTS, *CONDITIONS]
        assert differences(other, native(texts), random_rows(60, seed=8)) == []

    def test_letters_have_the_same_case_but_for_those_that_python_does_not_know(
        self, spark: Any
    ) -> None:
        signs = [chr(code) for code in range(33, 0x110000) if not 0xD800 <= code < 0xE000]
        lines = [signs[start : start + 200] for start in range(0, len(signs), 200)]
        table = pa.table([pa.array([" ".join(each) for each in lines])], names=["c"])
        found = spark.createDataFrame(table).selectExpr("lower(c)", "upper(c)").toArrow()
        for column, change in enumerate((str.lower, str.upper)):
            for line, text in zip(lines, found.column(column).to_pylist(), strict=True):
                for sign, theirs in zip(line, text.split(" "), strict=True):
                    known = "Cn" not in map(unicodedata.category, sign + theirs)
                    assert theirs == change(sign) or not known, (sign, theirs)
