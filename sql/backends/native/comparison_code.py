"""ComparisonWriter: generates code for comparisons, BETWEEN, IN and LIKE; null gives false."""

from collections.abc import Callable

from sql.backends.native import values
from sql.backends.native.source_code import Names, PythonCode, is_plain
from sql.datatypes import BYTES, DOUBLE, STRING, DecimalType
from sql.expressions import (
    Among,
    Both,
    Comparing,
    Constant,
    Either,
    Matching,
    TypedExpression,
)

Write = Callable[[TypedExpression], PythonCode]

# Strings with only characters below this one have the same order in code points and UTF-16.
SURROGATES = "\ud800"
PYTHON_OPERATORS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
DISTINCT = ("IS DISTINCT FROM", "IS NOT DISTINCT FROM")


def is_between(node: Both | Either) -> bool:
    """Whether it is value >= low AND value <= high with one value."""
    left, right = node.left, node.right
    return (
        isinstance(node, Both)
        and isinstance(left, Comparing)
        and isinstance(right, Comparing)
        and (left.operator, right.operator) == (">=", "<=")
        and left.left is right.left
    )


def _is_plain_order(node: Comparing) -> bool:
    """Whether Python's operators order the values as Java does."""
    left, right = node.left.type, node.right.type
    if left is STRING:
        return _has_common_order(node.left) or _has_common_order(node.right)
    return left is not BYTES and not _is_mixed(node) and right is not BYTES


def _has_common_order(node: TypedExpression) -> bool:
    return (
        isinstance(node, Constant)
        and isinstance(node.value, str)
        and all(sign < SURROGATES for sign in node.value)
    )


def _is_known(code: PythonCode) -> bool:
    return code.atom and not code.nullable


def _is_mixed(node: Comparing) -> bool:
    """Whether a double is compared with a decimal."""
    left, right = node.left.type, node.right.type
    return (left is DOUBLE and isinstance(right, DecimalType)) or (
        right is DOUBLE and isinstance(left, DecimalType)
    )


class ComparisonWriter:
    """Generates comparisons; the owner generates their operands."""

    def __init__(self, names: Names, write: Write) -> None:
        """`names` are shared with the parts."""
        self._names = names
        self._write = write

    def compared(self, node: Comparing, left: PythonCode | None = None) -> PythonCode:
        """The source of a comparison, never None; `left` is the left side if already generated."""
        left = left or self._side(node.left, node.right)
        right = self._side(node.right, node.left)
        if node.operator in DISTINCT:
            text = self._distinct(node, left, right)
        elif node.operator == "=" and not _is_mixed(node):
            text = self._equal(left, right)
        else:
            text = self._ordered(node, left, right)
        return PythonCode(text, nullable=False, constant=left.constant and right.constant)

    def between(self, node: Both) -> PythonCode:
        """value BETWEEN low AND high; the upper bound is only computed if the lower one is met."""
        low, high = node.left, node.right
        assert isinstance(low, Comparing)
        assert isinstance(high, Comparing)
        value = self._write(low.left)
        first, then = self._names.once(value)
        # A value that is never null needs no test, unless the test computes it.
        tests = [] if first == then and not value.nullable else [f"{first} is not None"]
        known = PythonCode(then, nullable=False, atom=True)
        bounds = self._side(low.right, low.left), self._side(high.right, high.left)
        if _is_plain_order(low) and _is_plain_order(high) and all(map(_is_known, bounds)):
            tests.append(f"{bounds[0].text} <= {then} <= {bounds[1].text}")
        else:
            tests.append(self._ordered(low, known, bounds[0]))
            tests.append(self._ordered(high, known, bounds[1]))
        constant = value.constant and bounds[0].constant and bounds[1].constant
        return PythonCode(f"({' and '.join(tests)})", nullable=False, constant=constant)

    def among(self, node: Among) -> PythonCode:
        """value IN (choices)."""
        value = self._write(node.value)
        choices = [self._write(each) for each in node.choices]
        if all(isinstance(each, Constant) or each.constant for each in choices):
            known = [eval(each.text, self._names.namespace) for each in choices]
            if all(map(is_plain, known)):
                found = self._names.constant(frozenset(each for each in known if each is not None))
                return PythonCode(
                    f"({value.text} in {found})", nullable=False, constant=value.constant
                )
        listed = "".join(f"{each.text}, " for each in choices)
        if not all(each.atom for each in choices):
            # All choices are computed, even if the value is null.
            call = self._names.constant(values.among)
            return PythonCode(f"{call}({value.text}, ({listed}))", nullable=False)
        if not value.nullable:
            return PythonCode(f"({value.text} in ({listed}))", nullable=False)
        first, then = self._names.once(value)
        return PythonCode(f"({first} is not None and {then} in ({listed}))", nullable=False)

    def matching(self, node: Matching) -> PythonCode:
        """value LIKE pattern."""
        value = self._write(node.value)
        if isinstance(node.pattern, Constant) and isinstance(node.pattern.value, str):
            return self._known_pattern(value, node.pattern.value, node.escape)
        pattern = self._write(node.pattern)
        like, escape = self._names.constant(values.like), self._names.value(node.escape)
        return PythonCode(f"{like}({value.text}, {pattern.text}, {escape.text})", nullable=False)

    def _known_pattern(self, value: PythonCode, pattern: str, escape: str | None) -> PythonCode:
        inner = pattern.strip("%")
        plain = "%" not in inner and "_" not in inner and (escape is None or escape not in pattern)
        text = self._names.value(inner).text
        before, after = pattern.startswith("%"), pattern.endswith("%")
        if not plain:
            return self._regular_expression(value, pattern, escape)
        if before and after:
            # None raises here, as it must; any other value is a string.
            test = f"({text} in {value.text})"
        elif after:
            test = f"{value.text}.startswith({text})"
        elif before:
            test = f"{value.text}.endswith({text})"
        elif value.nullable:
            return self._regular_expression(value, pattern, escape)
        else:
            test = f"({value.text} == {text})"
        return PythonCode(test, nullable=False, constant=value.constant)

    def _regular_expression(
        self, value: PythonCode, pattern: str, escape: str | None
    ) -> PythonCode:
        try:
            found = values.like_pattern(pattern, escape)
        except ValueError:
            # The error of the invalid pattern is then reported for each row.
            like, known = self._names.constant(values.like), self._names.value(pattern)
            sign = self._names.value(escape)
            return PythonCode(f"{like}({value.text}, {known.text}, {sign.text})", nullable=False)
        plain, length = found.quick
        quick, match = map(self._names.constant, (plain.fullmatch, found.fullmatch))
        first, then = self._names.once(value)
        test = f"(({quick} if len({first}) <= {length} else {match})({then}) is not None)"
        return PythonCode(test, nullable=False, constant=value.constant)

    def _side(self, side: TypedExpression, other: TypedExpression) -> PythonCode:
        """A constant number as a double beside a double: comparing equal types is faster."""
        if other.type is DOUBLE and isinstance(side, Constant) and isinstance(side.value, int):
            return self._names.value(float(side.value))
        return self._write(side)

    def _distinct(self, node: Comparing, left: PythonCode, right: PythonCode) -> str:
        if DOUBLE in (node.left.type, node.right.type):
            call = self._names.constant(
                values.distinct_decimals if _is_mixed(node) else values.distinct_doubles
            )
            test = f"{call}({left.text}, {right.text})"
            return test if node.operator == "IS DISTINCT FROM" else f"(not {test})"
        operator = "!=" if node.operator == "IS DISTINCT FROM" else "=="
        return f"({left.text} {operator} {right.text})"

    def _equal(self, left: PythonCode, right: PythonCode) -> str:
        """If the right side may raise, it is not computed if the left one is null."""
        if not left.nullable or (not right.nullable and right.atom):
            return f"({left.text} == {right.text})"
        first, then = self._names.once(left)
        return f"({first} is not None and {then} == {right.text})"

    def _ordered(self, node: Comparing, left: PythonCode, right: PythonCode) -> str:
        """With a test of each side that may be None; the left side is computed first."""
        tests, sides = [], []
        for side, tested in (
            (left, left.nullable or (right.nullable and not left.atom)),
            (right, right.nullable),
        ):
            if tested:
                first, then = self._names.once(side)
                tests.append(f"{first} is not None")
                sides.append(then)
            elif node.operator == "<>":
                first, then = self._names.once(side)
                tests += [f"{first} is not None"] if first != then else []
                sides.append(then)
            else:
                sides.append(side.text)
        tests.append(self._order(node, *sides))
        return f"({' and '.join(tests)})"

    def _order(self, node: Comparing, left: str, right: str) -> str:
        operator = PYTHON_OPERATORS[node.operator]
        if _is_mixed(node):
            convert = self._names.constant(values.decimal_of_double)
            if node.left.type is DOUBLE:
                left = f"{convert}({left})"
            else:
                right = f"{convert}({right})"
            return f"{left} {operator} {right}"
        if operator == "!=":
            if DOUBLE in (node.left.type, node.right.type):
                # In Java, no comparison with NaN is true.
                return f"({left} < {right} or {left} > {right})"
            return f"{left} != {right}"
        if _is_plain_order(node):
            return f"{left} {operator} {right}"
        before, not_after = (
            (values.text_before, values.text_not_after)
            if node.left.type is STRING
            else (values.bytes_before, values.bytes_not_after)
        )
        if operator in (">", ">="):
            left, right = right, left
        call = self._names.constant(before if operator in "<>" else not_after)
        return f"{call}({left}, {right})"
