"""Typed expressions as columns of Spark, if Spark's functions have the same results.

An expression becomes Spark SQL, by the same rules as the Python source of the native engine (see
native/expression_code.py): which parts may fail, and where a failure is null. Expressions without
an equal are NotNative; they are computed by Millstream's functions (see row_functions.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from sql.backends.native.evaluating import row_function
from sql.backends.spark.calculating import calculated
from sql.backends.spark.casting import cast
from sql.backends.spark.column_types import quoted_name
from sql.backends.spark.comparing import among, compared, matched
from sql.backends.spark.functions import SparkCall, called
from sql.backends.spark.spark_code import (
    INT_MAX,
    TEXT_MAX,
    NotNative,
    SqlCode,
    any_of,
    certain,
    constant,
    failing,
    known_type,
    null_of,
    unless,
)
from sql.datatypes import BIGINT, INT, STRING, ArrayType, DataType, StructType
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


def as_column(expression: TypedExpression, names: Sequence[str]) -> Any:
    """An expression as a column; `names` are the names of the row's columns in the frame.

    Any: PySpark's columns have no type hints.
    """
    from pyspark.sql.functions import expr

    return expr(spark_text(expression, names))


def is_native(expression: TypedExpression) -> bool:
    """Whether Spark computes it with equal results."""
    try:
        _Writer(None).code(expression)
    except NotNative:
        return False
    return True


def spark_text(expression: TypedExpression, names: Sequence[str]) -> str:
    """An expression in Spark's SQL; NotNative if there is no equal one."""
    return _Writer(names).code(expression).text


class _Writer:
    """Generates expressions over some columns; the default names are c0, c1 and so on."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self._names = names
        self._variables: dict[str, str] = {}
        self._count = 0

    def code(self, expression: TypedExpression) -> SqlCode:
        """The SQL of an expression."""
        if not isinstance(expression, Constant) and _is_constant(expression):
            return _computed(expression)
        result: SqlCode = self._writers[type(expression)](self, expression)
        if len(result.text) > TEXT_MAX:
            raise NotNative("the expression is too large")
        return result

    def _constant(self, node: Constant) -> SqlCode:
        return constant(node.value, node.type)

    def _column(self, node: ColumnValue) -> SqlCode:
        known_type(node.type)
        name = f"c{node.index}" if self._names is None else self._names[node.index]
        return SqlCode(quoted_name(name))

    def _variable(self, node: LambdaVariable) -> SqlCode:
        return SqlCode(self._variables[node.name])

    def _field(self, node: FieldValue) -> SqlCode:
        assert isinstance(node.struct.type, StructType)
        alike = [
            each for each in node.struct.type.fields if each.name.lower() == node.field.lower()
        ]
        if len(alike) > 1:
            raise NotNative("names that differ only in case")
        struct = self.code(node.struct)
        text = f"({struct.text}).{quoted_name(node.field)}"
        return SqlCode(text, can_fail=struct.can_fail, failure=struct.failed)

    def _entry(self, node: EntryValue) -> SqlCode:
        if node.key.type not in (INT, BIGINT, STRING):
            raise NotNative(f"keys of {node.key.type}")
        entries, key = self.code(node.map), self.code(node.key)
        later = None if key.failed is None else f"({entries.text} IS NOT NULL AND {key.failed})"
        failed = any_of((entries.failed, later))
        text = f"try_element_at({entries.text}, {key.text})"
        return SqlCode(text, can_fail=failed is not None, failure=failed)

    def _element(self, node: ElementValue) -> SqlCode:
        array, index = self.code(node.array), self.code(node.index)
        if index.is_constant and isinstance(index.value, int) and 0 < index.value <= INT_MAX:
            text = f"get({array.text}, {index.value - 1})"
            return SqlCode(text, can_fail=array.can_fail, failure=array.failed)
        if node.index.type is not INT:
            raise NotNative("an index that is not an INT")
        unknown = any_of((index.failed, f"({index.text} IS NULL)" if index.nullable else None))
        later = None if unknown is None else f"({array.text} IS NOT NULL AND {unknown})"
        failed = any_of((array.failed, later))
        place = f"if({index.text} >= 0, {index.text} - 1, array_size({array.text}) + {index.text})"
        text = f"get({array.text}, {place})"
        return SqlCode(text, can_fail=failed is not None, failure=failed)

    def _function(self, node: FunctionValue) -> SqlCode:
        arguments, failure = [], None
        for each in node.arguments:
            if isinstance(each, LambdaFunction):
                code, failure = self._lambda(each)
            else:
                code = self._argument(each)
            arguments.append(code)
        return called(SparkCall(node, arguments, failure))

    def _argument(self, node: TypedExpression) -> SqlCode:
        """A function or field that fails is null as an argument."""
        if isinstance(node, Constant) and node.type is None and node.value is not None:
            return SqlCode("NULL", is_constant=True, value=node.value)  # a unit of time
        code = self.code(node)
        return SqlCode(code.text) if isinstance(node, FunctionValue | FieldValue) else code

    def _lambda(self, node: LambdaFunction) -> tuple[SqlCode, str | None]:
        """A lambda, and another one that returns whether it fails, if it can."""
        outside, inside = self._variables, {}
        for each in node.variables:
            known_type(each.type)
            self._count += 1
            inside[each.name] = f"v{self._count}"
        self._variables = outside | inside
        try:
            body = self.code(node.body)
        finally:
            self._variables = outside
        names = ", ".join(inside.values())
        start = f"({names}) ->" if len(inside) > 1 else f"{names} ->"
        failure = None if body.failed is None else f"{start} {body.failed}"
        return SqlCode(f"{start} {body.text}", nullable=body.nullable), failure

    def _convert(self, node: Convert) -> SqlCode:
        if node.value.type is None:
            return constant(None, node.type)
        return cast(self.code(node.value), node.value.type, node.type, strict=node.strict)

    def _calculation(self, node: Calculation | Negation) -> SqlCode:
        return calculated(node, self.code)

    def _comparing(self, node: Comparing) -> SqlCode:
        return compared(node, self.code)

    def _among(self, node: Among) -> SqlCode:
        return among(node, self.code)

    def _matching(self, node: Matching) -> SqlCode:
        return matched(node, self.code)

    def _truth(self, node: TypedExpression) -> SqlCode:
        """A condition; NULL is not a condition and fails."""
        code = self.code(node)
        return failing(code.text) if code.nullable or code.can_fail else code

    def _both(self, node: Both) -> SqlCode:
        return self._connected(node, Both, "AND", "FALSE")

    def _either(self, node: Either) -> SqlCode:
        return self._connected(node, Either, "OR", "TRUE")

    def _connected(
        self, node: Both | Either, kind: type[Both] | type[Either], word: str, end: str
    ) -> SqlCode:
        """A chain of conditions; those after the deciding one are not computed."""
        parts: list[TypedExpression] = []
        left: TypedExpression = node
        while isinstance(left, kind):
            parts.append(left.right)
            left = left.left
        *first, last = [self._truth(each) for each in (left, *reversed(parts))]
        if not any(each.can_fail for each in first):
            text = f"({f' {word} '.join(each.text for each in (*first, last))})"
            return SqlCode(text, nullable=False, can_fail=last.can_fail)
        cases = ""
        for each in first:
            cases += f"WHEN {each.failed} THEN NULL " if each.can_fail else ""
            decides = f"NOT {each.text}" if end == "FALSE" else each.text
            cases += f"WHEN {decides} THEN {end} "
        return failing(f"CASE {cases}ELSE {last.text} END")

    def _opposite(self, node: Opposite) -> SqlCode:
        value = self._truth(node.value)
        return SqlCode(f"(NOT {value.text})", nullable=False, can_fail=value.can_fail)

    def _null_test(self, node: NullTest) -> SqlCode:
        value = self.code(node.value)
        test = f"({value.text} IS NULL)"
        return certain(test) if value.failed is None else failing(unless(value.failed, test))

    def _choosing(self, node: Choosing) -> SqlCode:
        conditions = [self._truth(condition) for condition, _ in node.branches]
        results = [self._typed(result, node.type) for _, result in node.branches]
        default = self._typed(node.default, node.type)
        text = _cases(conditions, [each.text for each in results], default.text, "NULL")
        parts = (*conditions, *results, default)
        nullable = any(each.nullable for each in (*results, default))
        if not any(each.can_fail for each in parts):
            return SqlCode(text, nullable=nullable)
        if not nullable:
            return failing(text)
        failures = [each.failed or "FALSE" for each in results]
        failure = _cases(conditions, failures, default.failed or "FALSE", "TRUE")
        return SqlCode(text, can_fail=True, failure=f"({failure})")

    def _typed(self, node: TypedExpression, wanted: DataType) -> SqlCode:
        """A part of an expression whose parts have one type."""
        if node.type is None:
            return constant(None, wanted)
        code = self.code(node)
        if node.type == wanted:
            return code
        if (node.type, wanted) == (INT, BIGINT):
            return cast(code, INT, BIGINT, strict=True)
        raise NotNative(f"{node.type} is not {wanted}")

    def _array(self, node: NewArray) -> SqlCode:
        assert isinstance(node.type, ArrayType)
        parts = [self._typed(each, node.type.element).text for each in node.elements]
        return certain(f"CAST(array({', '.join(parts)}) AS {known_type(node.type)})")

    def _map(self, node: NewMap) -> SqlCode:
        raise NotNative("keys of a map may be null or occur twice")

    def _struct(self, node: NewStruct) -> SqlCode:
        known_type(node.type)
        types = {each.name: each.type for each in node.type.fields}
        parts = [
            f"{self._typed(each, types[name]).text} AS {quoted_name(name)}"
            for name, each in node.fields
        ]
        return certain(f"struct({', '.join(parts)})")

    # mypy cannot know that the key of a method is the type of its expressions.
    _writers: ClassVar[dict[type, Callable[..., SqlCode]]] = {
        Constant: _constant,
        ColumnValue: _column,
        LambdaVariable: _variable,
        FieldValue: _field,
        ElementValue: _element,
        EntryValue: _entry,
        FunctionValue: _function,
        Convert: _convert,
        Calculation: _calculation,
        Negation: _calculation,
        Comparing: _comparing,
        Both: _both,
        Either: _either,
        Opposite: _opposite,
        NullTest: _null_test,
        Among: _among,
        Matching: _matching,
        Choosing: _choosing,
        NewArray: _array,
        NewMap: _map,
        NewStruct: _struct,
    }


def _cases(conditions: Sequence[SqlCode], results: Sequence[str], default: str, failed: str) -> str:
    cases = ""
    for condition, result in zip(conditions, results, strict=True):
        cases += f"WHEN {condition.failed} THEN {failed} " if condition.can_fail else ""
        cases += f"WHEN {condition.text} THEN {result} "
    return f"CASE {cases}ELSE {default} END"


def _is_constant(expression: object) -> bool:
    """Whether it is the same for all rows."""
    if isinstance(expression, ColumnValue | LambdaVariable | LambdaFunction):
        return False
    if isinstance(expression, FunctionValue) and expression.function.volatile:
        return False
    if isinstance(expression, tuple):
        return all(map(_is_constant, expression))
    if not isinstance(expression, TypedExpression):
        return True
    assert is_dataclass(expression)
    return all(_is_constant(getattr(expression, each.name)) for each in fields(expression))


def _computed(expression: TypedExpression) -> SqlCode:
    """The value of a constant expression, computed by Millstream's functions."""
    if expression.type is None:
        raise NotNative("a constant without a type")

    def forget(error: Exception, row: object) -> None:
        """Ignored: the failure is reported for each row."""

    is_null, value = row_function([NullTest(expression), expression], forget)(())
    if is_null is None:
        return SqlCode(null_of(expression.type), nullable=False, can_fail=True, failure="TRUE")
    return constant(value, expression.type)
