"""Expressions have the types that ksqlDB gives them, and errors its words."""

import pytest

from sql.analyse.expressions import ExpressionAnalyser
from sql.analyse.scope import Columns, ScopeColumn
from sql.datatypes import BIGINT, INT, STRING
from sql.errors import StatementFailed
from sql.expressions import ColumnValue, Constant, Convert
from sql.parse import parse_expression
from sql.syntax.expressions import Expression, Name, Not
from tests.sql.analyse.typing_scope import FUNCTIONS, analyser, typed


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", "INTEGER"),
        ("-2147483648", "INTEGER"),
        ("2147483648", "BIGINT"),
        ("1.50", "DECIMAL(3, 2)"),
        ("0.005", "DECIMAL(4, 3)"),
        ("-0.8", "DECIMAL(2, 1)"),
        ("1e3", "DOUBLE"),
        ("'a'", "STRING"),
        ("TRUE", "BOOLEAN"),
        ("X.I", "INTEGER"),
        ("ST->F", "INTEGER"),
        ("ST->`g`", "STRING"),
        ("A[1]", "INTEGER"),
        ("AA[-1][L]", "BIGINT"),
        ("M['k']", "BIGINT"),
        ("M[5]", "BIGINT"),
        ("I + I2", "INTEGER"),
        ("I * L", "BIGINT"),
        ("L / D", "DOUBLE"),
        ("N % D", "DOUBLE"),
        ("N + N2", "DECIMAL(7, 2)"),
        ("N - 1", "DECIMAL(13, 2)"),
        ("N * L", "DECIMAL(24, 2)"),
        ("N / N2", "DECIMAL(11, 8)"),
        ("N % N2", "DECIMAL(4, 2)"),
        ("S + S2", "STRING"),
        ("S || 'x'", "STRING"),
        ("-N", "DECIMAL(4, 2)"),
        ("+I", "INTEGER"),
        ("I = 1.5", "BOOLEAN"),
        ("DAY < '2024-01-01'", "BOOLEAN"),
        ("TS >= DAY", "BOOLEAN"),
        ("'10:00' > T", "BOOLEAN"),
        ("A = A", "BOOLEAN"),
        ("ROWTIME > '2024'", "BOOLEAN"),
        ("ROWTIME BETWEEN '2024' AND '2025-03'", "BOOLEAN"),
        ("I BETWEEN 1 AND 2.5", "BOOLEAN"),
        ("I IN (1, '2', NULL)", "BOOLEAN"),
        ("NULL IN (NULL)", "BOOLEAN"),
        ("S NOT LIKE 'a!%' ESCAPE '!'", "BOOLEAN"),
        ("NOT B AND B2 OR NULL IS NULL", "BOOLEAN"),
        ("CASE WHEN B THEN NULL WHEN B2 THEN I ELSE L END", "BIGINT"),
        ("CASE WHEN B THEN 'a' END", "STRING"),
        ("CASE I WHEN 1 THEN 'a' ELSE S END", "STRING"),
        ("CAST(S AS DECIMAL(4, 1))", "DECIMAL(4, 1)"),
        ("CAST(S AS VARCHAR(3))", "STRING"),
        ("CAST(NULL AS STRUCT<`a` INT>)", "STRUCT<`a` INTEGER>"),
        ("CAST(NULL AS PLACE)", "ARRAY<DOUBLE>"),
        ("ARRAY[NULL, 1, '2.5', L]", "ARRAY<DECIMAL(20, 1)>"),
        ("ARRAY[1, 2147483648]", "ARRAY<BIGINT>"),
        ("ARRAY['a', 1, TRUE]", "ARRAY<STRING>"),
        ("ARRAY[DAY, '2024-01-01']", "ARRAY<DATE>"),
        ("ARRAY[B, 'yes']", "ARRAY<BOOLEAN>"),
        ("ARRAY[A, ARRAY['1'], ARRAY[L]]", "ARRAY<ARRAY<BIGINT>>"),
        ("MAP('a' := 1, S := 2.5)", "MAP<STRING, DECIMAL(11, 1)>"),
        ("MAP(1 := M, 2 := MAP('a' := '5'))", "MAP<INTEGER, MAP<STRING, BIGINT>>"),
        ("STRUCT(a := 1, `b` := S)", "STRUCT<`A` INTEGER, `b` STRING>"),
        (
            "ARRAY[STRUCT(a := 1), STRUCT(b := S, a := L)]",
            "ARRAY<STRUCT<`B` STRING, `A` BIGINT>>",
        ),
        ("LENGTH(S)", "INTEGER"),
        ("HALF(N)", "DOUBLE"),
        ("SAME(I)", "DECIMAL(10, 0)"),
        ("OR_ELSE(I, L)", "BIGINT"),
        ("OR_ELSE(NULL, S)", "STRING"),
        ("UNIT(DAYS, 3)", "STRING"),
        ("EACH(A, x => x + 0.5)", "ARRAY<DECIMAL(12, 1)>"),
        ("EACH(AA, x => EACH(x, y => y > I))", "ARRAY<ARRAY<BOOLEAN>>"),
        ("EACH(AA, x => EACH(x, x => -x))", "ARRAY<ARRAY<BIGINT>>"),
        ("FOLD(A, L, (s, x) => s + x)", "BIGINT"),
        ("FOLD(AA[1], 0, (s, x) => s + x)", "INTEGER"),
    ],
)
def test_expressions_have_types(text: str, type_: str) -> None:
    assert str(typed(text).type) == type_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Z", "Column 'Z' cannot be resolved."),
        ("W.I", "Column 'W.I' cannot be resolved."),
        ("I->F", "Expected STRUCT type, got: INTEGER"),
        ("ST->H", "Could not find field 'H' in 'ST'."),
        ("S[1]", "Subscript expression (S[1]) do not apply to STRING."),
        ("ST['F']", "Use the dereference operator for STRUCTS: ST->'F'"),
        ("A['x']", "the index of an array must be an integer, not 'x' (STRING)"),
        ("M[S]['x']", "do not apply to BIGINT"),
        ("MAP(1 := 2)[D]", "the keys of MAP(1:=2) are INTEGER, not D (DOUBLE)"),
        ("I + NULL", "Error processing expression: (I + null). Arithmetic on types INTEGER and "),
        ("B * 1.5", "Error processing expression: (B * 1.5). Unsupported arithmetic types. BOOLE"),
        ("S - S2", "Unsupported arithmetic types. STRING STRING"),
        ("-S", "Error processing expression: -S."),
        ("I = NULL", "Comparison with NULL not supported: INTEGER = NULL\nUse 'IS NULL' or"),
        ("I > 'a'", "Cannot compare I (INTEGER) to 'a' (STRING) with GREATER_THAN."),
        ("A < A", "Cannot compare A (ARRAY<INTEGER>) to A (ARRAY<INTEGER>) with LESS_THAN."),
        ("B >= B2", "with GREATER_THAN_OR_EQUAL."),
        ("I BETWEEN 1 AND S", "Invalid expression: Cannot compare I (INTEGER) to S (STRING)"),
        ("NOT I", "Error processing expression: (NOT I). I (INTEGER) is not a BOOLEAN."),
        ("I AND B", "(I AND B)"),
        ("I IN (1, TRUE)", "operator does not exist: INTEGER = BOOLEAN (true)\nHint: You might"),
        ("S IN (1, D)", "operator does not exist: STRING = DOUBLE (D)"),
        ("L IN (1, 'x')", 'invalid input syntax for type BIGINT: "x".'),
        ("B IN ('maybe')", 'invalid input syntax for type BOOLEAN: "maybe".'),
        ("M IN (MAP('a' := B))", "MAP<STRING, BIGINT> = MAP<STRING, BOOLEAN> (MAP('a':=B))"),
        ("ST IN (STRUCT(F := 'x'))", 'invalid input syntax for type INTEGER: "x"'),
        ("'' IN (0, T)", "operator does not exist: TIME = INTEGER (0)"),
        ("I LIKE 'a'", "Like condition must be between strings"),
        ("S LIKE 'a' ESCAPE 'xy'", "single character"),
        ("CASE WHEN I THEN 1 END", "WHEN operand type should be boolean.\nType for 'I' is INTEG"),
        ("CASE WHEN B THEN 1 ELSE B END", "Invalid Case expression. Type for all 'THEN' clauses"),
        ("CASE WHEN B THEN NULL END", "Invalid Case expression. All case branches have NULL"),
        ("CAST(S AS ARRAY<INT>)", "Cast of STRING to ARRAY<INTEGER> is not supported"),
        ("CAST(Y AS STRING)", "Cast of BYTES to STRING is not supported"),
        ("CAST(S AS SHAPE)", "Cannot resolve unknown type: SHAPE"),
        ("CAST(S AS DECIMAL(2, 3))", "DECIMAL precision must be >= scale: DECIMAL(2,3)"),
        ("ARRAY[NULL]", "Cannot construct an array with all NULL elements"),
        ("ARRAY[]", "Array constructor cannot be empty"),
        ("MAP(NULL := 1)", "Cannot construct a map with all NULL keys"),
        ("MAP(1 := NULL)", "Cannot construct a map with all NULL values"),
        ("STRUCT(a := 1, a := 2)", "Duplicate field names found in STRUCT: 'STRUCT(A:=1, A:=2)'"),
        ("STRUCT(a := NULL)", "Can't infer a type of null."),
        ("NOTHING(1)", "Can't find any functions with the name 'NOTHING'"),
        ("LENGTH(I)", "Function 'LENGTH' does not accept parameters (INTEGER)."),
        ("TOTAL(I)", "TOTAL can not be used here"),
        ("FOLD(A, B, (s, x) => x)", "does not accept a lambda that returns INTEGER"),
        ("EACH(NULL, x => x)", "the type of parameter X in a lambda of EACH is unknown"),
        ("EACH(A, x => z)", "Column 'Z' cannot be resolved."),
        ("ROWTIME > 'now'", "Failed to parse timestamp 'now'"),
    ],
)
def test_mistakes_are_said_in_the_words_of_ksqldb(text: str, message: str) -> None:
    with pytest.raises(StatementFailed) as failure:
        typed(text)
    assert message in failure.value.message


def test_conversions_are_written_out() -> None:
    found = typed("I + L")
    assert isinstance(found.left, Convert)  # type: ignore[union-attr]
    assert found.left.type is BIGINT  # type: ignore[union-attr]
    times = typed("ROWTIME > '1970-01-02'")
    assert times.right == Constant(86_400_000, INT)  # type: ignore[union-attr]


def test_errors_of_conditions_and_results_name_their_place() -> None:
    cases = [
        ("WHERE", "I", "Type error in WHERE expression: Should evaluate to boolean but is I (INTE"),
        ("HAVING", "I > 'a'", "Error in HAVING expression: Cannot compare I (INTEGER) to 'a'"),
        ("WHERE", "I IN (TRUE)", "Invalid Predicate: operator does not exist"),
        ("WHERE", "Z > 1", "Column 'Z' cannot be resolved."),
    ]
    for clause, text, message in cases:
        with pytest.raises(StatementFailed) as failure:
            analyser().condition(parse_expression(text), clause)
        assert message in failure.value.message
    for text, message in [
        ("NULL", "Can't infer a type of null"),
        ("CAST(A AS INT)", "Invalid Select: Cast of ARRAY<INTEGER> to INTEGER is not supported"),
    ]:
        with pytest.raises(StatementFailed) as failure:
            analyser().select_item(parse_expression(text))
        assert message in failure.value.message
    assert analyser().select_item(parse_expression("I")).type is INT
    assert analyser().condition(parse_expression("B"), "WHERE").type is not None


def test_expressions_that_are_too_deep_are_refused() -> None:
    deep: Expression = Name("B")
    for _ in range(2000):
        deep = Not(deep)
    with pytest.raises(StatementFailed, match="too deep"):
        analyser().typed(deep)


def test_columns_hold_what_was_computed_before() -> None:
    total = parse_expression("TOTAL(I)")
    replaced = {total: ColumnValue(3, "TOTAL_1", BIGINT)}
    columns = Columns([ScopeColumn("X", "I", ColumnValue(0, "X_I", INT))])
    found = ExpressionAnalyser(columns, FUNCTIONS, {}, replaced)
    assert found.typed(total) == replaced[total]
    with pytest.raises(StatementFailed) as failure:
        found.condition(parse_expression("TOTAL(I) > '1'"), "HAVING")
    assert failure.value.message == (
        "Error in HAVING expression: Cannot compare TOTAL(X_I) (BIGINT) to '1' (STRING) with "
        "GREATER_THAN.\nStatement: (TOTAL(X_I) > '1')"
    )


def test_names_may_be_ambiguous() -> None:
    columns = Columns(
        [ScopeColumn(source, "K", ColumnValue(0, f"{source}_K", STRING)) for source in "AB"],
        clause="SELECT",
    )
    assert columns.find(Name("K", "B")).name == "B_K"
    with pytest.raises(StatementFailed) as failure:
        columns.find(Name("K"))
    assert failure.value.message == "Column 'K' is ambiguous. Could be A.K or B.K."
    with pytest.raises(StatementFailed, match=r"SELECT column 'Z' cannot be resolved\."):
        columns.find(Name("Z"))
