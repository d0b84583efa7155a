"""Functions that Spark has, too: a table of their calls in Spark's SQL.

A function is only listed if it has the same results for all values of its types, which a test
checks with random values. Many functions of the same name differ: positions in Spark's strings
count characters, not UTF-16 units, its sines and logarithms differ in the last digits, its dates
have other patterns. Letters that are newer than Python's Unicode tables may have another case in
Spark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sql.backends.spark.calculating import added_bigint
from sql.backends.spark.casting import double_to_bigint, trimmed
from sql.backends.spark.spark_code import (
    NotNative,
    SqlCode,
    any_of,
    constant,
    double_literal,
    known_type,
    text_literal,
    unless,
)
from sql.backends.spark.text_units import found_at, length, part
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
)
from sql.expressions import FunctionValue
from sql.functions.builtin import builtin_functions

# The maximum length of a replacement, as a factor: no string of a record can then exceed the limit.
GROWTH_MAX = 10
# Doubles from here on have no fraction.
WHOLE_DOUBLES = double_literal(2.0**52)
PLAIN = (BOOLEAN, INT, BIGINT, STRING, BYTES, DATE, TIME, TIMESTAMP)
NUMBERS = (INT, BIGINT, DATE, TIME, TIMESTAMP)
MILLISECONDS = {
    "MILLISECONDS": 1,
    "SECONDS": 1000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}


@dataclass(frozen=True, slots=True)
class SparkCall:
    """A function call with its arguments as SQL."""

    node: FunctionValue
    arguments: Sequence[SqlCode]
    # A lambda that returns whether the call's lambda fails, if it can.
    lambda_failure: str | None = None

    @property
    def sql_arguments(self) -> list[str]:
        """The arguments as SQL."""
        return [each.text for each in self.arguments]

    @property
    def types(self) -> tuple[DataType | None, ...]:
        """The types of the arguments; None for NULL and for units."""
        return tuple(each.type for each in self.node.arguments)

    def known_text(self, index: int) -> str:
        """An argument that must be a constant string."""
        value = self.arguments[index].value
        if not isinstance(value, str):
            raise NotNative("a string that depends on the row")
        return value


Build = Callable[[SparkCall], str]
Fits = Callable[[tuple[DataType | None, ...]], bool]


@dataclass(frozen=True, slots=True)
class CallRule:
    """The SQL with calls with arguments of some types."""

    fits: Fits
    build: Build
    never_null: bool = False


def called(call: SparkCall) -> SqlCode:
    """A call as SQL."""
    node = call.node
    function = node.function
    if function.volatile or not _is_builtin(node):
        raise NotNative(f"{function.signature.name} has no equal function in Spark")
    if not function.nulls and any(each.is_null for each in call.arguments):
        return constant(None, node.type)
    for rule in FUNCTIONS.get(function.signature.name.upper(), ()):
        if rule.fits(call.types):
            return _written(call, rule)
    raise NotNative(f"{function.signature} has no equal function in Spark")


def _is_builtin(node: FunctionValue) -> bool:
    signature, registry = node.function.signature, builtin_functions()
    known = registry.get(signature.name).overloads if signature.name in registry else []
    return any(signature is each.signature for each in known)


def _written(call: SparkCall, rule: CallRule) -> SqlCode:
    known_type(call.node.type)
    text = rule.build(call)
    failed = any_of((*(each.failed for each in call.arguments), _failure_of_lambda(call)))
    if failed is None:
        return SqlCode(text, nullable=not rule.never_null)
    text = unless(failed, text)
    if rule.never_null:
        return SqlCode(text, nullable=False, can_fail=True)
    return SqlCode(text, can_fail=True, failure=failed)


def _failure_of_lambda(call: SparkCall) -> str | None:
    """A lambda that fails for one element fails the whole call."""
    if call.lambda_failure is None:
        return None
    array = call.arguments[0].text
    return f"({array} IS NOT NULL AND exists({array}, {call.lambda_failure}))"


def _of(*types: DataType) -> Fits:
    """Arguments of these types."""

    def fits(given: tuple[DataType | None, ...]) -> bool:
        return len(given) == len(types) and all(
            each is None or each == wanted for each, wanted in zip(given, types, strict=True)
        )

    return fits


def _all_of(*types: DataType) -> Fits:
    """Any number of arguments of one of these types."""

    def fits(given: tuple[DataType | None, ...]) -> bool:
        found = {each for each in given if each is not None}
        return len(found) == 1 and found <= set(types)

    return fits


def _of_decimal(given: tuple[DataType | None, ...]) -> bool:
    return len(given) == 1 and isinstance(given[0], DecimalType)


def _alike(given: tuple[DataType | None, ...]) -> bool:
    """Arguments of the same type."""
    return len({each for each in given if each is not None}) == 1


def _plain(given: tuple[DataType | None, ...]) -> bool:
    """Arguments of one type whose values are compared in the same way in Spark."""
    found = {each for each in given if each is not None}
    return len(found) == 1 and all(map(_is_plain, found))


def _is_plain(type_: DataType | None) -> bool:
    return type_ in PLAIN or isinstance(type_, DecimalType)


def _plain_arrays(given: tuple[DataType | None, ...]) -> bool:
    """Arrays of such a type."""
    found = {each for each in given if each is not None}
    return len(found) == 1 and all(
        isinstance(each, ArrayType) and _is_plain(each.element) for each in found
    )


def _array_and_element(given: tuple[DataType | None, ...]) -> bool:
    array, element = given
    return (
        isinstance(array, ArrayType)
        and _is_plain(array.element)
        and element in (array.element, None)
    )


def _number_array(given: tuple[DataType | None, ...]) -> bool:
    """One array of numbers, which have the same order in Spark."""
    (array,) = given
    return isinstance(array, ArrayType) and (
        array.element in NUMBERS or isinstance(array.element, DecimalType)
    )


def _array_with(count: int) -> Fits:
    return lambda given: len(given) == count and isinstance(given[0], ArrayType)


def _map(given: tuple[DataType | None, ...]) -> bool:
    return len(given) == 1 and isinstance(given[0], MapType)


def _moved(*types: DataType) -> Fits:
    """A unit, a count and a time."""
    return lambda given: len(given) == 3 and given[0] is None and given[1:] == (INT, *types)


def _as(template: str) -> Build:
    """The arguments, inserted into a template."""
    return lambda call: template.format(*call.sql_arguments)


def _listed(template: str) -> Build:
    """All arguments, inserted as a list into a template."""
    return lambda call: template.format(", ".join(call.sql_arguments))


def _absolute(call: SparkCall) -> str:
    """The smallest integer has no opposite and is not changed."""
    value = call.sql_arguments[0]
    bits, type_ = (31, "INT") if call.types[0] is INT else (63, "BIGINT")
    return f"if({value} = CAST('{-(2**bits)}' AS {type_}), {value}, abs({value}))"


def _whole_double(call: SparkCall, function: str) -> str:
    """Rounds to an integer as a double; large numbers and signed zeros are unchanged."""
    value = call.sql_arguments[0]
    zero = f" WHEN {value} < 0D AND {value} > -1D THEN -0D" if function == "ceil" else ""
    return (
        f"CASE WHEN isnan({value}) OR abs({value}) >= {WHOLE_DOUBLES} OR {value} = 0D THEN {value}"
        f"{zero} ELSE CAST({function}({value}) AS DOUBLE) END"
    )


def _rounded(call: SparkCall) -> str:
    """Rounds halves up."""
    value = call.sql_arguments[0]
    up = f"if({value} - CAST(floor({value}) AS DOUBLE) >= 0.5D, 1L, 0L)"
    return (
        f"if(isnan({value}) OR abs({value}) >= {WHOLE_DOUBLES}, {double_to_bigint(value)},"
        f" floor({value}) + {up})"
    )


def _sign(call: SparkCall) -> str:
    value = call.sql_arguments[0]
    nan = f" WHEN isnan({value}) THEN 0" if call.types[0] is DOUBLE else ""
    return (
        f"CASE WHEN {value} IS NULL THEN NULL{nan} WHEN {value} > 0 THEN 1"
        f" WHEN {value} < 0 THEN -1 ELSE 0 END"
    )


def _replaced(call: SparkCall) -> str:
    """Spark does not replace an empty string; and the length of the result is limited."""
    old, new = call.known_text(1), call.known_text(2)
    if not old or len(new) > GROWTH_MAX * len(old):
        raise NotNative("a string that may grow")
    return f"replace({', '.join(call.sql_arguments)})"


def _split(call: SparkCall) -> str:
    delimiter = call.known_text(1)
    if not delimiter:
        raise NotNative("a string split into its characters")
    pattern = "".join(
        each if each.isalnum() or ord(each) > 127 else f"\\x{ord(each):02x}" for each in delimiter
    )
    return f"split({call.sql_arguments[0]}, {text_literal(pattern)}, -1)"


def _element(call: SparkCall) -> str:
    position, *choices = call.sql_arguments
    cases = " ".join(f"WHEN {position} = {n} THEN {each}" for n, each in enumerate(choices, 1))
    return f"CASE {cases} END" if choices else "CAST(NULL AS STRING)"


def _position(call: SparkCall) -> str:
    value, *choices = call.sql_arguments
    cases = " ".join(f"WHEN {value} = {each} THEN {n}" for n, each in enumerate(choices, 1))
    return f"CASE {cases} ELSE 0 END" if choices else "0"


def _substring(call: SparkCall) -> str:
    text, position, *count = call.sql_arguments
    return part(text, position, count[0] if count else None)


def _contains(call: SparkCall) -> str:
    array, value = call.sql_arguments
    null = f"exists({array}, each -> each IS NULL)"
    if call.arguments[1].is_null:
        return f"coalesce({null}, FALSE)"
    return (
        f"CASE WHEN {array} IS NULL THEN FALSE WHEN {value} IS NULL THEN {null}"
        f" ELSE coalesce(array_contains({array}, {value}), FALSE) END"
    )


def _array_concat(call: SparkCall) -> str:
    """A null array counts as empty."""
    known = [each.text for each in call.arguments if not each.is_null]
    if len(known) < 2:
        return known[0]
    return f"coalesce(concat({known[0]}, {known[1]}), {known[0]}, {known[1]})"


def _sorted(call: SparkCall) -> str:
    order = call.known_text(1).upper()
    if order in ("ASC", "ASCENDING"):
        return f"array_sort({call.sql_arguments[0]})"
    if order in ("DESC", "DESCENDING"):
        return f"sort_array({call.sql_arguments[0]}, FALSE)"
    raise NotNative("an unknown sort order")


def _array_join(call: SparkCall) -> str:
    array, *delimiter = call.sql_arguments
    between = f"coalesce({delimiter[0]}, '')" if delimiter else "','"
    return f"array_join(CAST({array} AS array<string>), {between}, 'null')"


def _encoding(names: dict[str, str]) -> Build:
    def build(call: SparkCall) -> str:
        template = names.get(call.known_text(1).lower())
        if template is None:
            raise NotNative("an encoding that Spark does not have")
        return template.format(call.sql_arguments[0])

    return build


def _later(sign: str) -> Build:
    """A timestamp, some units later or earlier."""

    def build(call: SparkCall) -> str:
        unit = call.known_text(0)
        size = MILLISECONDS.get(unit) or MILLISECONDS.get(f"{unit}S")
        if size is None:
            raise NotNative("a unit that is truncated to milliseconds")
        return added_bigint(
            call.sql_arguments[2], f"({sign}{size}L * CAST({call.sql_arguments[1]} AS BIGINT))"
        )

    return build


SAME = _as("{0}")
TO_BIGINT = _as("CAST({0} AS BIGINT)")

# By name: the first rule that matches the types of the arguments is used.
FUNCTIONS: dict[str, tuple[CallRule, ...]] = {
    # numbers
    "ABS": (
        CallRule(_of(INT), _absolute),
        CallRule(_of(BIGINT), _absolute),
        CallRule(_of(DOUBLE), _as("abs({0})")),
        CallRule(_of_decimal, _as("abs({0})")),
    ),
    "CEIL": (
        CallRule(_of(INT), SAME),
        CallRule(_of(BIGINT), SAME),
        CallRule(_of(DOUBLE), lambda call: _whole_double(call, "ceil")),
    ),
    "FLOOR": (
        CallRule(_of(INT), SAME),
        CallRule(_of(BIGINT), SAME),
        CallRule(_of(DOUBLE), lambda call: _whole_double(call, "floor")),
    ),
    "ROUND": (
        CallRule(_of(INT), TO_BIGINT),
        CallRule(_of(BIGINT), SAME),
        CallRule(_of(DOUBLE), _rounded),
    ),
    "TRUNC": (
        CallRule(_of(INT), TO_BIGINT),
        CallRule(_of(BIGINT), SAME),
        CallRule(_of(DOUBLE), lambda call: double_to_bigint(call.sql_arguments[0])),
    ),
    "SIGN": tuple(CallRule(_of(each), _sign) for each in (INT, BIGINT, DOUBLE)),
    "SQRT": tuple(CallRule(_of(each), _as("sqrt({0})")) for each in (INT, BIGINT, DOUBLE)),
    "DEGREES": tuple(CallRule(_of(each), _as("degrees({0})")) for each in (INT, BIGINT, DOUBLE)),
    "RADIANS": tuple(CallRule(_of(each), _as("radians({0})")) for each in (INT, BIGINT, DOUBLE)),
    "GREATEST": (CallRule(_all_of(*NUMBERS), _listed("greatest({0}, NULL)")),),
    "LEAST": (CallRule(_all_of(*NUMBERS), _listed("least({0}, NULL)")),),
    # nulls
    "COALESCE": (CallRule(_alike, _listed("coalesce({0})")),),
    "IFNULL": (CallRule(_alike, _listed("coalesce({0})")),),
    "NULLIF": (
        CallRule(_plain, _as("nullif({0}, {1})")),
        CallRule(_all_of(DOUBLE), _as("nullif({0}, {1})")),
    ),
    "AS_VALUE": (CallRule(_alike, SAME),),
    # strings
    "LCASE": (CallRule(_of(STRING), _as("lower({0})")),),
    "UCASE": (CallRule(_of(STRING), _as("upper({0})")),),
    "TRIM": (CallRule(_of(STRING), lambda call: trimmed(call.sql_arguments[0])),),
    "LEN": (
        CallRule(_of(STRING), lambda call: length(call.sql_arguments[0])),
        CallRule(_of(BYTES), _as("octet_length({0})")),
    ),
    "MD5": (CallRule(_of(STRING), _as("md5(CAST({0} AS BINARY))")),),
    "CONCAT": (CallRule(_all_of(STRING), _listed("concat_ws('', {0})"), never_null=True),),
    "CONCAT_WS": (CallRule(_all_of(STRING), _listed("concat_ws({0})")),),
    "SUBSTRING": (
        CallRule(_of(STRING, INT), _substring),
        CallRule(_of(STRING, INT, INT), _substring),
    ),
    "INSTR": (
        CallRule(_of(STRING, STRING), lambda call: found_at(*call.sql_arguments), never_null=True),
    ),
    "REPLACE": (CallRule(_of(STRING, STRING, STRING), _replaced),),
    "SPLIT": (CallRule(_of(STRING, STRING), _split),),
    "ELT": (
        CallRule(lambda given: given[0] is INT and set(given[1:]) <= {STRING, None}, _element),
    ),
    "FIELD": (CallRule(_all_of(STRING), _position, never_null=True),),
    "URL_ENCODE_PARAM": (CallRule(_of(STRING), _as("url_encode({0})")),),
    # bytes
    "TO_BYTES": (CallRule(_of(STRING, STRING), _encoding({"utf8": "CAST({0} AS BINARY)"})),),
    "FROM_BYTES": (CallRule(_of(BYTES, STRING), _encoding({"hex": "hex({0})"})),),
    # arrays and maps
    "ARRAY_LENGTH": (CallRule(_array_with(1), _as("array_size({0})")),),
    "ARRAY_CONTAINS": (CallRule(_array_and_element, _contains, never_null=True),),
    "ARRAY_CONCAT": (CallRule(_alike, _array_concat),),
    "ARRAY_DISTINCT": (CallRule(_plain_arrays, _as("array_distinct({0})")),),
    "ARRAY_EXCEPT": (CallRule(_plain_arrays, _as("array_except({0}, {1})")),),
    "ARRAY_INTERSECT": (CallRule(_plain_arrays, _as("array_intersect({0}, {1})")),),
    "ARRAY_UNION": (CallRule(_plain_arrays, _as("array_union({0}, {1})")),),
    "ARRAY_REMOVE": (CallRule(_array_and_element, _as("filter({0}, each -> NOT (each <=> {1}))")),),
    "ARRAY_MAX": (CallRule(_number_array, _as("array_max({0})")),),
    "ARRAY_MIN": (CallRule(_number_array, _as("array_min({0})")),),
    "ARRAY_SORT": (
        CallRule(lambda given: len(given) == 1 and _number_array(given), _as("array_sort({0})")),
        CallRule(lambda given: len(given) == 2 and _number_array(given[:1]), _sorted),
    ),
    "ARRAY_JOIN": tuple(
        rule
        for each in (BOOLEAN, INT, BIGINT, STRING)
        for rule in (
            CallRule(_of(ArrayType(each)), _array_join),
            CallRule(_of(ArrayType(each), STRING), _array_join),
        )
    ),
    "MAP_KEYS": (CallRule(_map, _as("map_keys({0})")),),
    "MAP_VALUES": (CallRule(_map, _as("map_values({0})")),),
    "FILTER": (CallRule(_array_with(2), _as("filter({0}, {1})")),),
    "TRANSFORM": (CallRule(_array_with(2), _as("transform({0}, {1})")),),
    # times
    "UNIX_DATE": (CallRule(_of(DATE), SAME),),
    "UNIX_TIMESTAMP": (CallRule(_of(TIMESTAMP), SAME),),
    "FROM_DAYS": (CallRule(_of(INT), SAME),),
    "FROM_UNIXTIME": (CallRule(_of(BIGINT), SAME),),
    "TIMESTAMPADD": (CallRule(_moved(TIMESTAMP), _later("")),),
    "TIMESTAMPSUB": (CallRule(_moved(TIMESTAMP), _later("-")),),
}
