"""ExpressionWriter: generates Python source for typed expressions.

Types are known, so the fastest source for them is generated. Two-valued logic is explicit: a
comparison first tests its sides for None. Arithmetic does not test, because None raises there, and
an expression that raises has no value. Integers are wrapped to 32 or 64 bits once per sum or
product, not once per operation.

Where ksqlDB continues with null after an error inside an expression (a CAST, an argument that is
the result of a function, a part of a constructor), the careful version has a guard; the fast one
does not, and after an error the careful version is used.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from sql.backends.native import values
from sql.backends.native.calculation_code import CalculationWriter
from sql.backends.native.comparison_code import ComparisonWriter, is_between
from sql.backends.native.source_code import (
    NULL,
    ColumnsOf,
    ColumnSource,
    Names,
    PythonCode,
    is_plain,
    nesting,
)
from sql.backends.native.value_casts import cast_function
from sql.datatypes import DataType
from sql.errors import StatementFailed
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

# Python refuses source with 200 open brackets.
NESTING_MAX = 60
SOURCE_MAX = 1_000_000
WHOLE_ROW = ColumnsOf("row")


class ExpressionWriter:
    """Generates expressions that share their constants."""

    def __init__(
        self, names: Names, guard: str | None = None, columns: ColumnSource = WHOLE_ROW
    ) -> None:
        """`guard` is the name of a function that converts errors to None, if there is one."""
        self._names = names
        self._columns = columns
        self._guard = guard
        self._variables: dict[str, str] = {}
        self._calculations = CalculationWriter(names, self.code, self._shortened)
        self._comparisons = ComparisonWriter(names, self.code)

    def code(self, expression: TypedExpression) -> PythonCode:
        """The source of an expression."""
        found: PythonCode = self._writers[type(expression)](self, expression)
        if found.constant and not found.atom:
            found = self._computed(found)
        return self._shortened(found)

    def _shortened(self, code: PythonCode) -> PythonCode:
        """The code itself or, if it is nested too deeply, a call of a function with it."""
        if len(code.text) > SOURCE_MAX:
            raise StatementFailed("the expression is too large")
        if len(code.text) <= NESTING_MAX or nesting(code.text) <= NESTING_MAX:
            return code
        guard = [self._guard] if self._guard is not None else []
        return self._names.function(
            ", ".join([self._columns.parameters, *guard, *self._variables.values()]), code
        )

    def _computed(self, code: PythonCode) -> PythonCode:
        """A constant expression, computed now if it succeeds and its value can be shared."""
        try:
            value = eval(code.text, {**self._names.namespace, "row": ()})
        except Exception:  # it will raise for each row, and be reported there
            return PythonCode(code.text, code.nullable)
        return self._names.value(value) if is_plain(value) else PythonCode(code.text, code.nullable)

    def _guarded(self, code: PythonCode) -> PythonCode:
        if code.constant and not code.atom:
            code = self._computed(code)
        if self._guard is None or code.atom:
            return code
        return PythonCode(f"{self._guard}(lambda: {code.text})")

    def _constant(self, node: Constant) -> PythonCode:
        if isinstance(node.value, list | dict):
            return PythonCode(self._names.constant(node.value), nullable=False, atom=True)
        return self._names.value(node.value)

    def _column(self, node: ColumnValue) -> PythonCode:
        return self._columns.code(node.index)

    def _variable(self, node: LambdaVariable) -> PythonCode:
        return PythonCode(self._variables[node.name], atom=True)

    def _lambda(self, node: LambdaFunction) -> PythonCode:
        outside = self._variables
        inside = {each.name: self._names.fresh("v") for each in node.variables}
        self._variables = outside | inside
        try:
            body = self.code(node.body)
        finally:
            self._variables = outside
        return PythonCode(f"(lambda {', '.join(inside.values())}: {body.text})", nullable=False)

    def _field(self, node: FieldValue) -> PythonCode:
        return self._part(self.code(node.struct), self._names.value(node.field))

    def _entry(self, node: EntryValue) -> PythonCode:
        return self._part(self.code(node.map), self.code(node.key))

    def _part(self, whole: PythonCode, key: PythonCode) -> PythonCode:
        if not whole.nullable:
            return PythonCode(f"{whole.text}.get({key.text})")
        first, then = self._names.once(whole)
        return PythonCode(f"(None if {first} is None else {then}.get({key.text}))")

    def _element(self, node: ElementValue) -> PythonCode:
        array = self.code(node.array)
        if isinstance(node.index, Constant) and isinstance(node.index.value, int):
            index = node.index.value
            if index > 0:
                first, then = self._names.once(array)
                return PythonCode(
                    f"({then}[{index - 1}] if {first} is not None and len({then}) >= {index}"
                    " else None)"
                )
        first, then = self._names.once(array)
        index_code, take = self.code(node.index), self._names.constant(values.element)
        return PythonCode(f"(None if {first} is None else {take}({then}, {index_code.text}))")

    def _function(self, node: FunctionValue) -> PythonCode:
        arguments = [self._argument(each) for each in node.arguments]
        types = [each.type for each in node.arguments]
        call = self._names.constant(node.function.implementation(types))
        constant = not node.function.volatile and all(each.constant for each in arguments)
        if node.function.nulls:
            shown = ", ".join(each.text for each in arguments)
            return PythonCode(f"{call}({shown})", constant=constant)
        if any(each.is_null for each in arguments):
            return NULL
        called, test = self._called(call, arguments)
        text = f"(None if {test} else {called})" if test else called
        return PythonCode(text, constant=constant)

    def _called(self, call: str, arguments: Sequence[PythonCode]) -> tuple[str, str]:
        """A call, and the test whether any argument is None; all are computed, as in Java."""
        computed: list[str] = []
        waiting: list[str] = []
        shown: list[str] = []
        several = any(each.nullable for each in arguments) and len(arguments) > 1
        for argument in arguments:
            if argument.nullable or (several and not argument.atom):
                first, then = self._names.once(argument)
                (waiting if argument.atom else computed).append(f"{first} is None")
                shown.append(then)
            else:
                shown.append(argument.text)
        if len(computed) > 1:
            # `or` would skip operands that may raise.
            computed = ["(" + " | ".join(f"({each})" for each in computed) + ")"]
        return f"{call}({', '.join(shown)})", " or ".join(computed + waiting)

    def _argument(self, node: TypedExpression) -> PythonCode:
        code = self.code(node)
        if isinstance(node, FunctionValue | FieldValue):
            return self._guarded(code)
        return code

    def _convert(self, node: Convert) -> PythonCode:
        value = self.code(node.value)
        if value.is_null or node.value.type is None:
            return value
        code = self._cast(value, node.value.type, node.type)
        return code if node.strict else self._guarded(code)

    def _cast(self, value: PythonCode, given: DataType, wanted: DataType) -> PythonCode:
        cast = cast_function(given, wanted)
        if cast is None:
            return value
        call = "float" if cast is float else self._names.constant(cast)
        if not value.nullable:
            return PythonCode(f"{call}({value.text})", nullable=False, constant=value.constant)
        first, then = self._names.once(value)
        return PythonCode(f"(None if {first} is None else {call}({then}))", constant=value.constant)

    def _calculation(self, node: Calculation | Negation) -> PythonCode:
        return self._calculations.code(node)

    def _comparing(self, node: Comparing) -> PythonCode:
        return self._comparisons.compared(node)

    def _among(self, node: Among) -> PythonCode:
        return self._comparisons.among(node)

    def _matching(self, node: Matching) -> PythonCode:
        return self._comparisons.matching(node)

    def _both(self, node: Both) -> PythonCode:
        if is_between(node):
            return self._comparisons.between(node)
        return self._connected(node, Both, " and ")

    def _either(self, node: Either) -> PythonCode:
        return self._connected(node, Either, " or ")

    def _connected(
        self, node: Both | Either, kind: type[Both] | type[Either], word: str
    ) -> PythonCode:
        """A chain of conditions; long chains are left-deep and are not nested in the source."""
        parts: list[TypedExpression] = []
        left: TypedExpression = node
        while isinstance(left, kind) and not is_between(left):
            parts.append(left.right)
            left = left.left
        parts.append(left)
        return _joined([self._truth(each) for each in reversed(parts)], word)

    def _opposite(self, node: Opposite) -> PythonCode:
        if isinstance(node.value, NullTest):
            return self._null_tested(node.value.value, "is not None", known=True)
        value = self._truth(node.value)
        return PythonCode(f"(not {value.text})", nullable=False, constant=value.constant)

    def _truth(self, node: TypedExpression) -> PythonCode:
        """A condition; NULL is not a condition and raises."""
        code = self.code(node)
        if not code.nullable:
            return code
        first, then = self._names.once(code)
        null = self._names.constant(values.null_condition)
        return PythonCode(
            f"({then} if {first} is not None else {null}())",
            nullable=False,
            constant=code.constant,
        )

    def _null_test(self, node: NullTest) -> PythonCode:
        return self._null_tested(node.value, "is None", known=False)

    def _null_tested(self, node: TypedExpression, test: str, *, known: bool) -> PythonCode:
        value = self.code(node)
        if value.atom and not value.nullable:
            return self._names.value(known)
        return PythonCode(f"({value.text} {test})", nullable=False, constant=value.constant)

    def _choosing(self, node: Choosing) -> PythonCode:
        default = self.code(node.default)
        conditions = self._conditions([condition for condition, _ in node.branches])
        results = [self.code(result) for _, result in node.branches]
        text = "".join(
            f"{result.text} if {condition.text} else "
            for condition, result in zip(conditions, results, strict=True)
        )
        nullable = any(each.nullable for each in (*results, default))
        return PythonCode(f"({text}{default.text})", nullable=nullable)

    def _conditions(self, nodes: Sequence[TypedExpression]) -> list[PythonCode]:
        """Conditions that are tested in order; CASE x WHEN ... computes x once."""
        first = nodes[0]
        if not isinstance(first, Comparing) or len(nodes) == 1:
            return [self._truth(each) for each in nodes]
        operand = self.code(first.left)
        if operand.atom:
            return [self._truth(each) for each in nodes]
        name, result = self._names.fresh("t"), []
        left = PythonCode(f"({name} := {operand.text})", nullable=operand.nullable)
        for node in nodes:
            if isinstance(node, Comparing) and node.left is first.left:
                result.append(self._comparisons.compared(node, left))
                left = PythonCode(name, nullable=operand.nullable, atom=True)
            else:
                result.append(self._truth(node))
        return result

    def _array(self, node: NewArray) -> PythonCode:
        parts = [self._guarded(self.code(each)).text for each in node.elements]
        return PythonCode(f"[{', '.join(parts)}]", nullable=False)

    def _map(self, node: NewMap) -> PythonCode:
        parts = [
            f"{self._guarded(self.code(key)).text}: {self._guarded(self.code(value)).text}"
            for key, value in node.entries
        ]
        return PythonCode(f"{{{', '.join(parts)}}}", nullable=False)

    def _struct(self, node: NewStruct) -> PythonCode:
        parts = [
            f"{self._names.constant(name)}: {self._guarded(self.code(value)).text}"
            for name, value in node.fields
        ]
        return PythonCode(f"{{{', '.join(parts)}}}", nullable=False)

    # mypy cannot know that the key of a method is the type of its expressions.
    _writers: ClassVar[dict[type, Callable[..., PythonCode]]] = {
        Constant: _constant,
        ColumnValue: _column,
        LambdaVariable: _variable,
        LambdaFunction: _lambda,
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


def _joined(parts: Sequence[PythonCode], word: str) -> PythonCode:
    constant = all(each.constant for each in parts)
    return PythonCode(
        f"({word.join(each.text for each in parts)})", nullable=False, constant=constant
    )
