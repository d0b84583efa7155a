"""Operators: the types of their operands and results."""

from sql.analyse.casts import base_name
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    decimal_of,
    is_numeric,
)

DIVISION_SCALE_MIN = 6
EQUALITIES = ("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
# The names of operators in errors.
OPERATOR_NAMES = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}


def calculated_type(operator: str, left: DataType | None, right: DataType | None) -> DataType:
    """The type of `left operator right`; ValueError if the operation is not supported."""
    if left is None or right is None:
        shown = ("null" if left is None else left), ("null" if right is None else right)
        raise ValueError(f"Arithmetic on types {shown[0]} and {shown[1]} are not supported.")
    if left is STRING and right is STRING and operator == "+":
        return STRING
    if not is_numeric(left) or not is_numeric(right):
        raise ValueError(f"Unsupported arithmetic types. {base_name(left)} {base_name(right)}")
    if left is DOUBLE or right is DOUBLE:
        return DOUBLE
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        return _decimal_result(operator, decimal_of(left), decimal_of(right))
    return BIGINT if BIGINT in (left, right) else INT


def _decimal_result(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    left_whole, right_whole = left.precision - left.scale, right.precision - right.scale
    if operator in "+-":
        return DecimalType(scale + max(left_whole, right_whole) + 1, scale)
    if operator == "*":
        return DecimalType(left.precision + right.precision + 1, left.scale + right.scale)
    if operator == "/":
        scale = max(DIVISION_SCALE_MIN, left.scale + right.precision + 1)
        return DecimalType(left_whole + right.scale + scale, scale)
    return DecimalType(min(left_whole, right_whole) + scale, scale)


def comparable(operator: str, left: DataType, right: DataType) -> bool:
    """Whether two values can be compared with an operator."""
    if is_numeric(left):
        return is_numeric(right)
    match left:
        case ArrayType() | MapType() | StructType():
            return type(left) is type(right) and operator in EQUALITIES
    if left is BOOLEAN:
        return right is BOOLEAN and operator in EQUALITIES
    if left is STRING:
        return right in (STRING, TIME, DATE, TIMESTAMP)
    if left is TIME:
        return right in (TIME, STRING)
    if left in (DATE, TIMESTAMP):
        return right in (DATE, TIMESTAMP, STRING)
    return left is BYTES and right is BYTES


def compared_type(left: DataType, right: DataType) -> DataType | None:
    """The type that both sides of a comparison are converted to; None for no conversion."""
    if left == right:
        return None
    for time in (TIME, TIMESTAMP, DATE):
        if time in (left, right):
            return time
    # A 64-bit integer has more digits than a double, and is rounded to it.
    if DOUBLE in (left, right) and BIGINT in (left, right):
        return DOUBLE
    return None
