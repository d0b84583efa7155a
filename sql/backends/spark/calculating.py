"""Calculations in Spark's SQL: + - * / % and unary minus, with Java's overflow and without errors.

Null, and any operand without a result, make a calculation fail, so a null result always means a
failure. Integers wrap around. INT is calculated as BIGINT, which has room for one operation. BIGINT
is tried first; only on overflow it is computed again with decimals. Both versions are generated for
a whole chain of operations, so that its operands are written twice, and not twice per operation.
"""

from collections.abc import Callable

from sql.backends.spark.spark_code import NotNative, SqlCode, double_literal, failing, known_type
from sql.datatypes import BIGINT, DOUBLE, INT, STRING, DecimalType
from sql.expressions import Calculation, Negation, TypedExpression

Write = Callable[[TypedExpression], SqlCode]

TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
LOWEST = "CAST('-9223372036854775808' AS BIGINT)"
INFINITY, NAN, ZERO = double_literal(float("inf")), double_literal(float("nan")), "0D"


def calculated(node: Calculation | Negation, write: Write) -> SqlCode:
    """The SQL of a calculation; null where it fails."""
    if node.type is INT:
        return failing(_int(node, write))
    if node.type is BIGINT:
        return failing(_bigint(node, write))
    if node.type is DOUBLE:
        return failing(_double(node, write))
    if isinstance(node, Calculation) and node.type is STRING:
        return _joined(write(node.left), write(node.right))
    return failing(_decimal(node, write))


def wrapped_int(text: str) -> str:
    """The lowest 32 bits of a BIGINT, as an INT."""
    return f"CAST(shiftright(shiftleft({text}, 32), 32) AS INT)"


def wrapped_bigint(text: str) -> str:
    """The lowest 64 bits of a decimal without a fraction, as a BIGINT."""
    return (
        f"CAST(pmod({text} + 9223372036854775808BD, 18446744073709551616BD)"
        " - 9223372036854775808BD AS BIGINT)"
    )


def added_bigint(left: str, right: str) -> str:
    """left + right, both BIGINT."""
    return f"coalesce(try_add({left}, {right}), {_exact('+', left, right)})"


def _int(node: Calculation | Negation, write: Write) -> str:
    if isinstance(node, Negation):
        return wrapped_int(f"(0L - {_long(write(node.value))})")
    left, right = write(node.left), write(node.right)
    if node.operator in TRIED:
        return wrapped_int(f"({_long(left)} {node.operator} {_long(right)})")
    if node.operator == "/":
        return wrapped_int(f"({_long(left)} div {_divisor(right)})")
    return f"({left.text} % {_divisor(right)})"


def _long(code: SqlCode) -> str:
    return f"CAST({code.text} AS BIGINT)"


def _divisor(code: SqlCode) -> str:
    """A divisor: null instead of zero."""
    if code.is_constant and code.value != 0:
        return code.text
    return f"nullif({code.text}, 0)"


def _bigint(node: Calculation | Negation, write: Write) -> str:
    if isinstance(node, Calculation) and node.operator in "/%":
        left, right = write(node.left), write(node.right)
        if node.operator == "%":
            return f"({left.text} % {_divisor(right)})"
        quotient = f"({left.text} div {_divisor(right)})"
        if right.is_constant and right.value != -1:
            return quotient
        # Only the smallest number divided by -1 overflows, and its result is the same number.
        overflow = f"{left.text} = {LOWEST} AND {right.text} = -1"
        return f"if({overflow}, {left.text}, {quotient})"
    fast, exact = _chain(node, write)
    return f"coalesce({fast}, {exact})"


def _chain(node: TypedExpression, write: Write) -> tuple[str, str]:
    """Sums and products of a BIGINT: tried first, and exact."""
    if isinstance(node, Negation) and node.type is BIGINT:
        value = _chain(node.value, write)
        return f"try_subtract(0L, {value[0]})", _exact("-", "0L", value[1])
    if isinstance(node, Calculation) and node.type is BIGINT and node.operator in TRIED:
        left, right = _chain(node.left, write), _chain(node.right, write)
        return (
            f"{TRIED[node.operator]}({left[0]}, {right[0]})",
            _exact(node.operator, left[1], right[1]),
        )
    text = write(node).text
    return text, text


def _exact(operator: str, left: str, right: str) -> str:
    return wrapped_bigint(
        f"(CAST({left} AS DECIMAL(19,0)) {operator} CAST({right} AS DECIMAL(19,0)))"
    )


def _double(node: Calculation | Negation, write: Write) -> str:
    if isinstance(node, Negation):
        return f"(- {write(node.value).text})"
    left, right = write(node.left), write(node.right)
    if node.operator in TRIED:
        return f"({left.text} {node.operator} {right.text})"
    if right.is_constant and right.value:
        return f"({left.text} {node.operator} {right.text})"
    if node.operator == "%":
        return f"if({right.text} = {ZERO}, {left.text} * {NAN}, try_mod({left.text}, {right.text}))"
    # Only the string of a zero shows its sign.
    endless = f"if(CAST({right.text} AS STRING) = '-0.0', - {INFINITY}, {INFINITY})"
    return (
        f"if({right.text} = {ZERO}, {left.text} * {endless}, try_divide({left.text}, {right.text}))"
    )


def _decimal(node: Calculation | Negation, write: Write) -> str:
    type_ = known_type(node.type)
    if isinstance(node, Negation):
        return f"CAST(- {write(node.value).text} AS {type_})"
    sides = (node.left.type, node.right.type)
    if node.operator == "/" or not all(isinstance(each, DecimalType) for each in sides):
        # A quotient that needs rounding must fail, which Spark does not detect.
        raise NotNative("a quotient of decimals")
    call = TRIED.get(node.operator, "try_mod")
    return f"try_cast({call}({write(node.left).text}, {write(node.right).text}) AS {type_})"


def _joined(left: SqlCode, right: SqlCode) -> SqlCode:
    """left + right; null becomes the string that Java prints for it."""
    sides = [_text_side(left), _text_side(right)]
    text = f"concat({', '.join(sides)})"
    return SqlCode(text, nullable=False, can_fail=left.can_fail or right.can_fail)


def _text_side(code: SqlCode) -> str:
    if not code.nullable:
        return code.text
    shown = f"coalesce({code.text}, 'null')"
    return shown if code.failed is None else f"if({code.failed}, NULL, {shown})"
