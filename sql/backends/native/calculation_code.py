"""CalculationWriter: the source of + - * / % and of signs, for each type of numbers."""

from collections.abc import Callable
from decimal import Context

from sql.backends.native import values
from sql.backends.native.source_code import Code, Names
from sql.datatypes import BIGINT, DOUBLE, INT, STRING, DecimalType
from sql.expressions import Calculation, Constant, Convert, Negation, TypedExpression

Write = Callable[[TypedExpression], Code]


class CalculationWriter:
    """Writes calculations; their parts are written by who made it."""

    def __init__(self, names: Names, write: Write) -> None:
        """`names` are shared with the parts."""
        self._names = names
        self._write = write

    def code(self, node: Calculation | Negation) -> Code:
        """The source of a calculation; it is never None."""
        if node.type in (INT, BIGINT):
            return self._whole(node)
        if node.type is DOUBLE:
            return self._double(node)
        if node.type is STRING:
            assert isinstance(node, Calculation)
            return self._text(node)
        return self._decimal(node)

    def _whole(self, node: Calculation | Negation) -> Code:
        if isinstance(node, Calculation) and node.operator == "%":
            return self._remainder(node)
        text, constant = self._raw(node)
        name = self._names.fresh("t")
        low, high, wrap = (
            (values.INT_MIN, values.INT_MAX, values.wrap_int)
            if node.type is INT
            else (values.BIGINT_MIN, values.BIGINT_MAX, values.wrap_bigint)
        )
        again = self._names.constant(wrap)
        return Code(
            f"({name} if {low} <= ({name} := {text}) <= {high} else {again}({name}))",
            nullable=False,
            constant=constant,
        )

    def _raw(self, node: TypedExpression) -> tuple[str, bool]:
        """Source that may leave the type's range: sums and products wrap alike at the end."""
        spine: list[Calculation] = []
        start: TypedExpression = node
        while (
            isinstance(start, Calculation) and start.operator in "+-*" and start.type == node.type
        ):
            spine.append(start)
            start = start.left
        text, constant = self._raw_part(start, node, inner=bool(spine))
        is_sum = False
        for outer in reversed(spine):
            right, right_constant = self._raw_part(outer.right, node, inner=True)
            left = f"({text})" if is_sum and outer.operator == "*" else text
            text, constant = f"{left} {outer.operator} {right}", constant and right_constant
            is_sum = outer.operator != "*"
        return text, constant

    def _raw_part(
        self, node: TypedExpression, whole: TypedExpression, *, inner: bool
    ) -> tuple[str, bool]:
        if isinstance(node, Negation) and node.type == whole.type:
            text, constant = self._raw_part(node.value, whole, inner=True)
            return f"(-{text})", constant
        if isinstance(node, Calculation) and node.type == whole.type:
            if node.operator in "+-*":
                text, constant = self._raw(node)
                return f"({text})", constant
            if node.operator == "/" and not inner:
                return self._quotient(node)
        code = self._write(node)
        return code.text, code.constant

    def _quotient(self, node: Calculation) -> tuple[str, bool]:
        left, right = self._write(node.left), self._write(node.right)
        constant = left.constant and right.constant
        divisor = _positive(node.right)
        if divisor is not None:
            first, then = self._names.once(left)
            return f"({then} // {divisor} if {first} >= 0 else -(-{then} // {divisor}))", constant
        divide = self._names.constant(values.divide_whole)
        return f"{divide}({left.text}, {right.text})", constant

    def _remainder(self, node: Calculation) -> Code:
        left, right = self._write(node.left), self._write(node.right)
        constant = left.constant and right.constant
        divisor = _positive(node.right)
        if divisor is not None:
            first, then = self._names.once(left)
            text = f"({then} % {divisor} if {first} >= 0 else -(-{then} % {divisor}))"
            return Code(text, nullable=False, constant=constant)
        call = self._names.constant(values.remainder_whole)
        return Code(f"{call}({left.text}, {right.text})", nullable=False, constant=constant)

    def _double(self, node: Calculation | Negation) -> Code:
        if isinstance(node, Negation):
            value = self._write(node.value)
            return Code(f"(-{value.text})", nullable=False, constant=value.constant)
        left, right = self._sides(node)
        constant = left.constant and right.constant
        if node.operator == "%":
            call = self._names.constant(values.remainder_double)
            text = f"{call}({left.text}, {right.text})"
        elif node.operator == "/" and not (isinstance(node.right, Constant) and node.right.value):
            # Python raises where a double is divided by zero.
            first, numerator = self._names.once(left)
            second, divisor = self._names.once(right)
            zero = self._names.constant(values.divide_by_zero)
            # What is not known already is computed in the test, and both are there afterwards.
            test = second if first == numerator else f"{first} is not None and {second}"
            text = f"({numerator} / {divisor} if {test} else {zero}({numerator}, {divisor}))"
        else:
            text = f"({left.text} {node.operator} {right.text})"
        return Code(text, nullable=False, constant=constant)

    def _sides(self, node: Calculation) -> tuple[Code, Code]:
        """Both sides; beside a double Python converts a whole number itself."""
        left, right = node.left, node.right
        if _is_widened(left) and not _is_widened(right):
            assert isinstance(left, Convert)
            left = left.value
        elif _is_widened(right) and not _is_widened(left):
            assert isinstance(right, Convert)
            right = right.value
        return self._write(left), self._write(right)

    def _text(self, node: Calculation) -> Code:
        left, right = self._write(node.left), self._write(node.right)
        constant = left.constant and right.constant
        if not left.nullable and not right.nullable:
            return Code(f"({left.text} + {right.text})", nullable=False, constant=constant)
        join = self._names.constant(values.joined_texts)
        return Code(f"{join}({left.text}, {right.text})", nullable=False, constant=constant)

    def _decimal(self, node: Calculation | Negation) -> Code:
        assert isinstance(node.type, DecimalType)
        context = values.exact_context(node.type)
        if isinstance(node, Negation):
            value = self._write(node.value)
            minus = self._names.constant(context.minus)
            return Code(f"{minus}({value.text})", nullable=False, constant=value.constant)
        left, right = self._write(node.left), self._write(node.right)
        call = self._names.constant(_decimal_operation(node, context))
        text = f"{call}({left.text}, {right.text})"
        if node.operator == "*":
            # Java's decimals have no negative zero.
            name = self._names.fresh("t")
            text = f"({name} if ({name} := {text}) else {name}.copy_abs())"
        return Code(text, nullable=False, constant=left.constant and right.constant)


def _positive(node: TypedExpression) -> int | None:
    """A divisor that is known and needs no care."""
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
