"""A plain evaluator of typed expressions: slow, without tricks, to compare generated code with."""

import math
import re
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from sql.backends.native.value_casts import cast_function
from sql.datatypes import BIGINT, BYTES, DOUBLE, INT, STRING, DataType, DecimalType
from sql.expressions import (
    Among,
    Both,
    Calculation,
    Choosing,
    ColumnValue,
    Comparing,
    Constant,
    Convert,
    Either,
    ElementValue,
    EntryValue,
    FieldValue,
    FunctionValue,
    LambdaFunction,
    LambdaVariable,
    Matching,
    Negation,
    NewArray,
    NewMap,
    NewStruct,
    NullTest,
    Opposite,
    TypedExpression,
)

# Any: values have the types of the expressions.
Row = tuple[Any, ...]
EXACT = Context(prec=200, traps=[Inexact, InvalidOperation])


class NoValue(Exception):
    """An expression that failed."""


def evaluated(node: TypedExpression, row: Row, variables: dict[str, Any] | None = None) -> Any:
    """The value of an expression; NoValue where it has none."""
    known = variables or {}

    def of(part: TypedExpression) -> Any:
        return evaluated(part, row, known)

    def guarded(part: TypedExpression) -> Any:
        try:
            return of(part)
        except NoValue:
            return None

    return EVALUATORS[type(node)](node, of, guarded, row, known)


Of = Callable[[TypedExpression], Any]


def present(value: Any) -> Any:
    if value is None:
        raise NoValue
    return value


def constant(node: Constant, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return node.value


def column(node: ColumnValue, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return row[node.index]


def variable(node: LambdaVariable, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return known[node.name]


def function_of(node: LambdaFunction, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    def call(*values: Any) -> Any:
        names = [each.name for each in node.variables]
        return evaluated(node.body, row, known | dict(zip(names, values, strict=True)))

    return call


def field(node: FieldValue, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    struct = of(node.struct)
    return None if struct is None else struct[node.field]


def entry(node: EntryValue, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    entries = of(node.map)
    return None if entries is None else entries.get(of(node.key))


def element(node: ElementValue, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    array = of(node.array)
    if array is None:
        return None
    index = present(of(node.index))
    if index == 0 or abs(index) > len(array):
        return None
    return array[index - 1] if index > 0 else array[index]


def function(node: FunctionValue, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    given = [
        guarded(each) if isinstance(each, FunctionValue | FieldValue) else of(each)
        for each in node.arguments
    ]
    if not node.function.nulls and any(each is None for each in given):
        return None
    try:
        return node.function.implementation([each.type for each in node.arguments])(*given)
    except Exception as error:
        raise NoValue from error


def convert(node: Convert, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    try:
        value = of(node.value)
        return None if value is None else _cast(value, node.value.type, node.type)
    except NoValue:
        if node.strict:
            raise
        return None


def _cast(value: Any, given: DataType | None, wanted: DataType) -> Any:
    assert given is not None
    cast = cast_function(given, wanted)
    try:
        return value if cast is None else cast(value)
    except Exception as error:
        raise NoValue from error


def calculation(node: Calculation, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    left, right = of(node.left), of(node.right)
    if node.type is STRING:
        return ("null" if left is None else left) + ("null" if right is None else right)
    left, right = present(left), present(right)
    if node.type is DOUBLE:
        return _doubles(node.operator, float(left), float(right))
    if isinstance(node.type, DecimalType):
        return _decimals(node.operator, left, right, node.type)
    return _wholes(node.operator, left, right, 32 if node.type is INT else 64)


def _doubles(operator: str, left: float, right: float) -> float:
    if operator in "+-*":
        return {"+": left + right, "-": left - right, "*": left * right}[operator]
    if operator == "/":
        if right:
            return left / right
        if not left or math.isnan(left) or math.isnan(right):
            return math.nan
        same = math.copysign(1, left) == math.copysign(1, right)
        return math.inf if same else -math.inf
    if math.isinf(left) or not right or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def _decimals(operator: str, left: Decimal, right: Decimal, type_: DecimalType) -> Decimal:
    if operator in "/%" and not right:
        raise NoValue
    try:
        if operator == "/":
            found = Context(prec=type_.precision, traps=[Inexact]).divide(left, right)
        else:
            found = {
                "+": EXACT.add,
                "-": EXACT.subtract,
                "*": EXACT.multiply,
                "%": EXACT.remainder,
            }[operator](left, right)
        found = EXACT.quantize(found, Decimal((0, (1,), -type_.scale)))
    except Inexact as error:
        raise NoValue from error
    return found if found else abs(found)


def _wholes(operator: str, left: int, right: int, bits: int) -> int:
    if operator in "/%" and not right:
        raise NoValue
    if operator == "/":
        found = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    elif operator == "%":
        found = abs(left) % abs(right) * (-1 if left < 0 else 1)
    else:
        found = {"+": left + right, "-": left - right, "*": left * right}[operator]
    found = found % 2**bits
    return int(found - 2**bits if found >= 2 ** (bits - 1) else found)


def negation(node: Negation, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    value = present(of(node.value))
    if node.type in (INT, BIGINT):
        return _wholes("-", 0, value, 32 if node.type is INT else 64)
    if node.type is DOUBLE:
        return -value
    return -value if value else abs(value)


def comparing(node: Comparing, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> bool:
    left = of(node.left)
    distinct = "DISTINCT" in node.operator
    if left is None and not distinct:
        return False
    right = of(node.right)
    if left is None or right is None:
        unequal = (left is None) != (right is None)
        return distinct and unequal is (node.operator == "IS DISTINCT FROM")
    sign = _compared(node, left, right)
    return {
        "=": sign == 0,
        "<>": sign in (-1, 1),
        "<": sign == -1,
        "<=": sign in (-1, 0),
        ">": sign == 1,
        ">=": sign in (0, 1),
        "IS DISTINCT FROM": sign in (-1, 1),
        "IS NOT DISTINCT FROM": sign not in (-1, 1),
    }[node.operator]


def _compared(node: Comparing, left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None beside NaN."""
    types = (node.left.type, node.right.type)
    if DOUBLE in types and any(isinstance(each, DecimalType) for each in types):
        if not math.isfinite(left) or not math.isfinite(right):
            raise NoValue
        left, right = Decimal(str(left)), Decimal(str(right))
    if types[0] is STRING:
        left, right = (each.encode("utf-16-be", "surrogatepass") for each in (left, right))
    if types[0] is BYTES:
        left, right = ([(one + 128) % 256 for one in each] for each in (left, right))
    if left == right:
        return 0
    if isinstance(left, dict | list) and types[0] is not BYTES:
        return 1
    if left < right:
        return -1
    return 1 if left > right else None


def both(node: Both, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return present(of(node.left)) and present(of(node.right))


def either(node: Either, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return present(of(node.left)) or present(of(node.right))


def opposite(node: Opposite, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return not present(of(node.value))


def null_test(node: NullTest, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return of(node.value) is None


def among(node: Among, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    value, choices = of(node.value), [of(each) for each in node.choices]
    return value is not None and any(each is not None and each == value for each in choices)


def matching(node: Matching, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    value, pattern = present(of(node.value)), present(of(node.pattern))
    shown, signs = "", iter(pattern)
    for sign in signs:
        if sign == node.escape:
            following = next(signs, None)
            if following is None:
                raise NoValue
            shown += re.escape(following)
        else:
            shown += {"%": "(?s:.*)", "_": "(?s:.)"}.get(sign, re.escape(sign))
    return re.fullmatch(shown, value) is not None


def choosing(node: Choosing, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    for condition, result in node.branches:
        if present(of(condition)):
            return of(result)
    return of(node.default)


def new_array(node: NewArray, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return [guarded(each) for each in node.elements]


def new_map(node: NewMap, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return {guarded(key): guarded(value) for key, value in node.entries}


def new_struct(node: NewStruct, of: Of, guarded: Of, row: Row, known: dict[str, Any]) -> Any:
    return {name: guarded(value) for name, value in node.fields}


EVALUATORS: dict[type, Callable[..., Any]] = {
    Constant: constant,
    ColumnValue: column,
    LambdaVariable: variable,
    LambdaFunction: function_of,
    FieldValue: field,
    EntryValue: entry,
    ElementValue: element,
    FunctionValue: function,
    Convert: convert,
    Calculation: calculation,
    Negation: negation,
    Comparing: comparing,
    Both: both,
    Either: either,
    Opposite: opposite,
    NullTest: null_test,
    Among: among,
    Matching: matching,
    Choosing: choosing,
    NewArray: new_array,
    NewMap: new_map,
    NewStruct: new_struct,
}
