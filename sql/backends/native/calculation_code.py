"""CalculationWriter: generates code for + - * / % and unary minus, for each number type."""

from collections.abc import Callable
from decimal import Context

from sql.backends.native import values
from sql.backends.native.source_code import Names, PythonCode
from sql.datatypes import BIGINT, DOUBLE, INT, STRING, DecimalType
from sql.expressions import Calculation, Constant, Convert, Negation, TypedExpression

Write = Callable[[TypedExpression], PythonCode]


class CalculationWriter:
    """Generates calculations; the owner generates their operands."""

    def __init__(
        self, names: Names, write: Write, shorten: Callable[[PythonCode], PythonCode]
    ) -> None:
        """`names` are shared with the parts; `shorten` is for deeply nested code."""
        self._names = names
        self._write = write
        self._shorten = shorten

    def code(self, node: Calculation | Negation) -> PythonCode:
        """The source of a calculation; its value is never None."""
        if node.type in (INT, BIGINT):
            return self._whole(node)
        if node.type is DOUBLE:
            return self._double(node)
        if node.type is STRING:
            assert isinstance(node, Calculation)
            return self._text(node)
        return self._decimal(node)

    def _whole(self, node: Calculation | Negation) -> PythonCode:
        """A chain of operations; sums and products wrap around once, at the end."""
        spine: list[Calculation] = []
        start: TypedExpression = node
        while isinstance(start, Calculation) and start.type == node.type:
            spine.append(start)
            start = start.left
        found = self._raw_part(start, node)
        is_sum = is_raw = isinstance(start, Negation)
        for outer in reversed(spine):
            if outer.operator in "+-*":
                right = self._raw_part(outer.right, node)
                left = f"({found.text})" if is_sum and outer.operator == "*" else found.text
                text = f"{left} {outer.operator} {right.text}"
                found = PythonCode(text, nullable=False, constant=found.constant and right.constant)
                is_sum, is_raw = outer.operator != "*", True
            else:
                found = self._wrapped(found, node) if is_raw else found
                found = self._shorten(self._divided(outer, found))
                # Only the smallest number divided by -1 is out of range.
                is_sum, is_raw = False, outer.operator == "/" and _positive(outer.right) is None
        return self._wrapped(found, node) if is_raw else found

    def _wrapped(self, raw: PythonCode, node: TypedExpression) -> PythonCode:
        low, high, wrap = (
            (values.INT_MIN, values.INT_MAX, values.wrap_int)
            if node.type is INT
            else (values.BIGINT_MIN, values.BIGINT_MAX, values.wrap_bigint)
        )
        name, again = self._names.fresh("t"), self._names.constant(wrap)
        return PythonCode(
            f"({name} if {low} <= ({name} := {raw.text}) <= {high} else {again}({name}))",
            nullable=False,
            constant=raw.constant,
        )

    def _raw_part(self, node: TypedExpression, whole: TypedExpression) -> PythonCode:
        """An operand whose value may be out of the type's range."""
        if isinstance(node, Negation) and node.type == whole.type:
            value = self._raw_part(node.value, whole)
            return PythonCode(f"(-{value.text})", nullable=False, constant=value.constant)
        if isinstance(node, Calculation) and node.type == whole.type and node.operator in "+-*":
            left, right = self._raw_part(node.left, whole), self._raw_part(node.right, whole)
            constant = left.constant and right.constant
            return PythonCode(
                f"({left.text} {node.operator} {right.text})", False, constant=constant
            )
        return self._write(node)

    def _divided(self, node: Calculation, left: PythonCode) -> PythonCode:
        """The quotient or remainder of a generated operand."""
        sign = "//" if node.operator == "/" else "%"
        right, divisor = self._write(node.right), _positive(node.right)
        constant = left.constant and right.constant
        if divisor is not None:
            first, then = self._names.once(left)
            text = f"({then} {sign} {divisor} if {first} >= 0 else -(-{then} {sign} {divisor}))"
        else:
            call = self._names.constant(
                values.divide_whole if node.operator == "/" else values.remainder_whole
            )
            text = f"{call}({left.text}, {right.text})"
        return PythonCode(text, nullable=False, constant=constant)

    def _double(self, node: Calculation | Negation) -> PythonCode:
        if isinstance(node, Negation):
            value = self._write(node.value)
            return PythonCode(f"(-{value.text})", nullable=False, constant=value.constant)
        left, right = self._sides(node)
        constant = left.constant and right.constant
        if node.operator == "%":
            call = self._names.constant(values.remainder_double)
            text = f"{call}({left.text}, {right.text})"
        elif node.operator == "/" and not (isinstance(node.right, Constant) and node.right.value):
            # Python raises an error if a double is divided by zero.
            first, numerator = self._names.once(left)
            second, divisor = self._names.once(right)
            zero = self._names.constant(values.divide_by_zero)
            # Values that are not in a variable yet are assigned in the test, so that both are
            # assigned afterwards: a divisor that was not computed, because the numerator is None,
            # is None.
            unset = "None" if second == divisor else f"({divisor} := None)"
            test = second if first == numerator else f"{first} is not {unset} and {second}"
            text = f"({numerator} / {divisor} if {test} else {zero}({numerator}, {divisor}))"
        else:
            text = f"({left.text} {node.operator} {right.text})"
        return PythonCode(text, nullable=False, constant=constant)

    def _sides(self, node: Calculation) -> tuple[PythonCode, PythonCode]:
        """Both sides; Python converts an integer operand of a double itself."""
        left, right = node.left, node.right
        if _is_widened(left) and not _is_widened(right):
            assert isinstance(left, Convert)
            left = left.value
        elif _is_widened(right) and not _is_widened(left):
            assert isinstance(right, Convert)
            right = right.value
        return self._write(left), self._write(right)

    def _text(self, node: Calculation) -> PythonCode:
        left, right = self._write(node.left), self._write(node.right)
        constant = left.constant and right.constant
        if not left.nullable and not right.nullable:
            return PythonCode(f"({left.text} + {right.text})", nullable=False, constant=constant)
        join = self._names.constant(values.joined_texts)
        return PythonCode(f"{join}({left.text}, {right.text})", nullable=False, constant=constant)

    def _decimal(self, node: Calculation | Negation) -> PythonCode:
        assert isinstance(node.type, DecimalType)
        context = values.exact_context(node.type)
        if isinstance(node, Negation):
            value = self._write(node.value)
            minus = self._names.constant(context.minus)
            return PythonCode(f"{minus}({value.text})", nullable=False, constant=value.constant)
        left, right = self._write(node.left), self._write(node.right)
        call = self._names.constant(_decimal_operation(node, context))
        text = f"{call}({left.text}, {right.text})"
        if node.operator == "*":
            # Java's decimals have no negative zero.
            name = self._names.fresh("t")
            text = f"({name} if ({name} := {text}) else {name}.copy_abs())"
        return PythonCode(text, nullable=False, constant=left.constant and right.constant)


def _positive(node: TypedExpression) -> int | None:
    """A constant divisor that needs no check."""
    while isinstance(node, Convert) and node.type is BIGINT:
        node = node.value
    if isinstance(node, Constant) and isinstance(node.value, int) and node.value > 0:
        return node.value
    return None


def _is_widened(node: TypedExpression) -> bool:
    return (
        isinstance(node, Convert)
        and node.type is DOUBLE
        and node.value.type in (INT, BIGINT)
        and not isinstance(node.value, Constant)
    )


def _decimal_operation(node: Calculation, context: Context) -> object:
    assert isinstance(node.type, DecimalType)
    if node.operator == "+":
        return context.add
    if node.operator == "-":
        return context.subtract
    if node.operator == "*":
        return context.multiply
    if node.operator == "/":
        return values.decimal_division(node.type)
    assert isinstance(node.left.type, DecimalType)
    assert isinstance(node.right.type, DecimalType)
    return values.decimal_remainder(node.left.type, node.right.type)
