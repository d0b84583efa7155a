"""ExpressionAnalyser: determines the types of expressions, and adds implicit conversions.

Aggregate and table functions are not resolved here: the planner computes them first and passes the
columns with their results as `replaced`.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from sql.analyse.calls import CallAnalyser
from sql.analyse.casts import base_name, castable
from sql.analyse.common_types import CommonTypes, UnsupportedExpression, decimal_literal_type
from sql.analyse.expression_text import expression_text, name_text
from sql.analyse.magic_times import as_milliseconds
from sql.analyse.operators import OPERATOR_NAMES, calculated_type, comparable, compared_type
from sql.analyse.scope import Scope
from sql.analyse.type_names import data_type
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
    decimal_of,
    is_numeric,
)
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
from sql.functions.registry import FunctionRegistry
from sql.syntax import expressions as ex

NO_TYPE_OF_NULL = (
    "Can't infer a type of null. Please explicitly cast it to a required type, "
    "e.g. CAST(null AS VARCHAR)."
)


def converted(value: TypedExpression, wanted: DataType) -> TypedExpression:
    """A value converted to another type; NULL gets the type."""
    if value.type == wanted:
        return value
    if value.type is None:
        return Constant(None, wanted)
    return Convert(value, wanted)


class ExpressionAnalyser:
    """Determines the types of expressions in one scope."""

    def __init__(
        self,
        scope: Scope,
        functions: FunctionRegistry,
        types: Mapping[str, DataType] | None = None,
        replaced: Mapping[ex.Expression, ColumnValue] | None = None,
        *,
        null_texts: bool = False,
    ) -> None:
        """`types` are custom types; `replaced` are expressions that columns already contain.

        With `null_texts`, null becomes the string "null" when it is cast to a string.
        """
        self._scope = scope
        self._null_texts = null_texts
        self._types = types or {}
        self._replaced = replaced or {}
        self._variables: dict[str, LambdaVariable] = {}
        # A cache: the types of CASE and ARRAY are needed at each level above. It also stores the
        # expressions, so that no id is used twice.
        self._known: dict[int, tuple[ex.Expression, TypedExpression]] = {}
        self._calls = CallAnalyser(functions, self.typed, self._lambda_body)
        self._common = CommonTypes(lambda each: self.typed(each).type, self.text)

    def typed(self, expression: ex.Expression) -> TypedExpression:
        """The expression with types."""
        known = self._known.get(id(expression))
        if known is not None:
            return known[1]
        result: TypedExpression | None = self._replaced.get(expression) if self._replaced else None
        if result is None:
            try:
                result = self._handlers[type(expression)](self, expression)
            except RecursionError:
                raise _failed("the expression is nested too deeply", expression) from None
        self._known[id(expression)] = (expression, result)
        return result

    def select_item(self, expression: ex.Expression) -> TypedExpression:
        """An expression in SELECT."""
        try:
            result = self.typed(expression)
        except UnsupportedExpression as error:
            raise _failed(f"Invalid Select: {error.message}", expression) from error
        if result.type is None:
            raise _failed(NO_TYPE_OF_NULL, expression)
        return result

    def condition(self, expression: ex.Expression, clause: str) -> TypedExpression:
        """A condition in WHERE or HAVING."""
        try:
            result = self.typed(expression)
        except UnsupportedExpression as error:
            raise _failed(f"Invalid Predicate: {error.message}", expression) from error
        except StatementFailed as error:
            if "cannot be resolved" in error.message or "is ambiguous" in error.message:
                raise
            raise _failed(
                f"Error in {clause} expression: {error.message}\n"
                f"Statement: {self.text(expression)}",
                expression,
            ) from error
        if result.type is not BOOLEAN:
            shown = "null" if result.type is None else result.type
            raise _failed(
                f"Type error in {clause} expression: Should evaluate to boolean but is "
                f"{self.text(expression)} ({shown}) instead.",
                expression,
            )
        return result

    def text(self, expression: ex.Expression) -> str:
        """An expression as in errors: columns have the names that they have in rows."""

        def shown(reference: ex.Name) -> str:
            if reference.source is None and reference.name in self._variables:
                return reference.name
            try:
                return name_text(self._scope.find(reference).name)
            except StatementFailed:
                # Replaced parts may contain names of another scope.
                return name_text(reference.name)

        return expression_text(expression, shown)

    def _lambda_body(
        self, variables: tuple[LambdaVariable, ...], body: ex.Expression
    ) -> TypedExpression:
        outside, known = self._variables, self._known
        self._variables, self._known = outside | {each.name: each for each in variables}, {}
        try:
            return self.typed(body)
        finally:
            self._variables, self._known = outside, known

    def _name(self, node: ex.Name) -> TypedExpression:
        if node.source is None and node.name in self._variables:
            return self._variables[node.name]
        return self._scope.find(node)

    def _field(self, node: ex.FieldOf) -> TypedExpression:
        struct = self.typed(node.struct)
        if not isinstance(struct.type, StructType):
            raise _failed(f"Expected STRUCT type, got: {struct.type}", node)
        for field in struct.type.fields:
            if field.name == node.field:
                return FieldValue(struct, field.name, field.type)
        raise _failed(f"Could not find field '{node.field}' in '{self.text(node.struct)}'.", node)

    def _subscript(self, node: ex.Subscript) -> TypedExpression:
        base, index = self.typed(node.base), self.typed(node.index)
        if isinstance(base.type, ArrayType):
            if index.type not in (INT, BIGINT):
                raise _failed(
                    f"the index of an array must be an integer, not {self.text(node.index)} "
                    f"({index.type})",
                    node,
                )
            return ElementValue(base, index, base.type.element)
        if isinstance(base.type, MapType):
            key = self._common.common([node.index], base.type.key)
            if key != base.type.key:
                raise _failed(
                    f"the keys of {self.text(node.base)} are {base.type.key}, not "
                    f"{self.text(node.index)} ({index.type})",
                    node,
                )
            return EntryValue(base, converted(index, base.type.key), base.type.value)
        struct = ""
        if isinstance(base.type, StructType):
            struct = (
                " Use the dereference operator for STRUCTS: "
                f"{self.text(node.base)}->{self.text(node.index)}"
            )
        raise _failed(
            f"Subscript expression ({self.text(node)}) do not apply to {base.type}.{struct}", node
        )

    def _call(self, node: ex.Call) -> TypedExpression:
        return self._calls.typed(node)

    def _concatenation(self, node: ex.Concatenation) -> TypedExpression:
        return self._calls.typed(ex.Call("CONCAT", (node.left, node.right), position=node.position))

    def _cast(self, node: ex.Cast) -> TypedExpression:
        value, wanted = self.typed(node.value), data_type(node.target, self._types)
        if value.type is not None and not castable(value.type, wanted):
            raise UnsupportedExpression(f"Cast of {value.type} to {wanted} is not supported")
        result = converted(value, wanted)
        if not self._null_texts or wanted is not STRING or value.type is STRING:
            return result
        return Choosing(((NullTest(value), Constant("null", STRING)),), result, STRING)

    def _arithmetic(self, node: ex.Arithmetic) -> TypedExpression:
        left, right = self.typed(node.left), self.typed(node.right)
        try:
            result = calculated_type(node.operator, left.type, right.type)
        except ValueError as error:
            raise _failed(
                f"Error processing expression: {self.text(node)}. {error}", node
            ) from None
        assert left.type is not None
        assert right.type is not None
        if isinstance(result, DecimalType):
            left, right = (
                converted(left, decimal_of(left.type)),
                converted(right, decimal_of(right.type)),
            )
        else:
            left, right = converted(left, result), converted(right, result)
        return Calculation(node.operator, left, right, result)

    def _signed(self, node: ex.Signed) -> TypedExpression:
        value = self.typed(node.value)
        if value.type is None or not is_numeric(value.type):
            raise _failed(
                f"Error processing expression: {self.text(node)}. "
                f"Unsupported arithmetic types. {value.type}",
                node,
            )
        return Negation(value, value.type) if node.sign == "-" else value

    def _comparison(self, node: ex.Comparison) -> TypedExpression:
        return self._compared(node.operator, node.left, node.right, node)

    def _compared(
        self, operator: str, left: ex.Expression, right: ex.Expression, node: ex.Expression
    ) -> TypedExpression:
        typed_left, typed_right, wanted = self._sides(operator, left, right, node)
        if wanted is not None:
            typed_left, typed_right = _strictly(typed_left, wanted), _strictly(typed_right, wanted)
        return Comparing(operator, typed_left, typed_right)

    def _sides(
        self, operator: str, left: ex.Expression, right: ex.Expression, node: ex.Expression
    ) -> tuple[TypedExpression, TypedExpression, DataType | None]:
        """Both sides of a valid comparison, and the common type, if they need one."""
        sides = as_milliseconds(left, right)
        typed_left, typed_right = self.typed(sides[0]), self.typed(sides[1])
        first, second = typed_left.type, typed_right.type
        if first is None or second is None:
            raise _failed(
                "Comparison with NULL not supported: "
                f"{base_name(first)} {operator} {base_name(second)}\n"
                "Use 'IS NULL' or 'IS NOT NULL' instead.",
                node,
            )
        if not comparable(operator, first, second):
            # ksqlDB detects this later for BETWEEN, with another message.
            before = "Invalid expression: " if isinstance(node, ex.Between) else ""
            raise _failed(
                f"{before}Cannot compare {self.text(left)} ({first}) to {self.text(right)} "
                f"({second}) with {OPERATOR_NAMES[operator]}.",
                node,
            )
        return typed_left, typed_right, compared_type(first, second)

    def _between(self, node: ex.Between) -> TypedExpression:
        """Both comparisons have the same left side, so that it is computed once."""
        value, low, first = self._sides(">=", node.value, node.low, node)
        _, high, second = self._sides("<=", node.value, node.high, node)
        wanted = first if second is None else second
        if wanted is not None:
            types = [each.type for each in (value, low, high) if each.type is not None]
            if not all(castable(each, wanted) for each in types):
                left = self._compared(">=", node.value, node.low, node)
                right = self._compared("<=", node.value, node.high, node)
                return _perhaps_not(Both(left, right), negated=node.negated)
            value, low, high = (_strictly(each, wanted) for each in (value, low, high))
        both = Both(Comparing(">=", value, low), Comparing("<=", value, high))
        return _perhaps_not(both, negated=node.negated)

    def _logical(self, node: ex.Logical) -> TypedExpression:
        left, right = self._boolean(node.left, node), self._boolean(node.right, node)
        return Both(left, right) if node.operator == "AND" else Either(left, right)

    def _not(self, node: ex.Not) -> TypedExpression:
        return Opposite(self._boolean(node.value, node))

    def _boolean(self, value: ex.Expression, node: ex.Expression) -> TypedExpression:
        found = self.typed(value)
        if found.type not in (BOOLEAN, None):
            raise _failed(
                f"Error processing expression: {self.text(node)}. "
                f"{self.text(value)} ({found.type}) is not a BOOLEAN.",
                node,
            )
        return converted(found, BOOLEAN)

    def _is_null(self, node: ex.IsNull) -> TypedExpression:
        return _perhaps_not(NullTest(self.typed(node.value)), negated=node.negated)

    def _in(self, node: ex.In) -> TypedExpression:
        choices = [each for each in node.choices if not isinstance(each, ex.Null)]
        common = self._common.common([node.value, *choices])
        if common is None:
            return _perhaps_not(Constant(False, BOOLEAN), negated=node.negated)
        value, *others = (self._as_one(each, common) for each in (node.value, *choices))
        return _perhaps_not(Among(value, tuple(others)), negated=node.negated)

    def _as_one(self, node: ex.Expression, common: DataType) -> TypedExpression:
        """An element of a list, converted to the list's type."""
        found = self.typed(node)
        if found.type is not None and not castable(found.type, common):
            raise UnsupportedExpression(
                f"operator does not exist: {common} = {found.type} ({self.text(node)})\n"
                "Hint: You might need to add explicit type casts."
            )
        return converted(found, common)

    def _like(self, node: ex.Like) -> TypedExpression:
        value, pattern = self.typed(node.value), self.typed(node.pattern)
        if value.type is not STRING or pattern.type is not STRING:
            raise _failed(f"Like condition must be between strings: {self.text(node)}", node)
        if node.escape is not None and len(node.escape) != 1:
            raise _failed(
                f"Expected escape character to be a single character, got '{node.escape}'", node
            )
        return _perhaps_not(Matching(value, pattern, node.escape), negated=node.negated)

    def _case(self, node: ex.Case) -> TypedExpression:
        results = [each.result for each in node.whens]
        if node.default is not None:
            results.append(node.default)
        try:
            common = self._common.common(results)
        except UnsupportedExpression as error:
            raise _failed(
                "Invalid Case expression. Type for all 'THEN' clauses should be the same.\n"
                f"{error.message}",
                node,
            ) from error
        if common is None:
            raise _failed("Invalid Case expression. All case branches have NULL type", node)
        branches = tuple(
            (self._when(node, each.condition), self._as_one(each.result, common))
            for each in node.whens
        )
        default = self._as_one(node.default or ex.Null(), common)
        return Choosing(branches, default, common)

    def _when(self, node: ex.Case, condition: ex.Expression) -> TypedExpression:
        if node.operand is not None:
            return self._compared("=", node.operand, condition, condition)
        found = self.typed(condition)
        if found.type is not BOOLEAN:
            raise _failed(
                "WHEN operand type should be boolean.\n"
                f"Type for '{self.text(condition)}' is {found.type}",
                condition,
            )
        return found

    def _array(self, node: ex.ArrayOfValues) -> TypedExpression:
        if not node.elements:
            raise _failed(_empty("Array", "one element"), node)
        common = self._common.common(node.elements)
        if common is None:
            raise _failed(_all_null("an array", "elements", "value"), node)
        return NewArray(
            tuple(self._as_one(each, common) for each in node.elements), ArrayType(common)
        )

    def _map(self, node: ex.MapOfValues) -> TypedExpression:
        if not node.entries:
            raise _failed(_empty("Map", "one key value pair"), node)
        keys = self._common.common(key for key, _ in node.entries)
        if keys is None:
            raise _failed(_all_null("a map", "keys", "key"), node)
        values = self._common.common(value for _, value in node.entries)
        if values is None:
            raise _failed(_all_null("a map", "values", "value"), node)
        return NewMap(
            tuple(
                (self._as_one(key, keys), self._as_one(value, values))
                for key, value in node.entries
            ),
            MapType(keys, values),
        )

    def _struct(self, node: ex.StructOfValues) -> TypedExpression:
        names = [name for name, _ in node.fields]
        if len(set(names)) < len(names):
            raise _failed(f"Duplicate field names found in STRUCT: '{self.text(node)}'.", node)
        fields, types = [], []
        for name, value in node.fields:
            found = self.typed(value)
            if found.type is None:
                raise _failed(NO_TYPE_OF_NULL, value)
            fields.append((name, found))
            types.append(Field(name, found.type))
        return NewStruct(tuple(fields), StructType(tuple(types)))

    def _misplaced(self, node: ex.Star | ex.Lambda) -> TypedExpression:
        raise _failed(f"{self.text(node)} can only be used as the argument of a function", node)

    def _literal(self, node: ex.Literal | ex.IntervalUnit) -> TypedExpression:
        match node:
            case ex.Null():
                return Constant(None, None)
            case ex.BooleanLiteral(value):
                return Constant(value, BOOLEAN)
            case ex.IntegerLiteral(value):
                return Constant(value, INT if -(2**31) <= value < 2**31 else BIGINT)
            case ex.DecimalLiteral(value):
                return Constant(value, decimal_literal_type(value))
            case ex.DoubleLiteral(value):
                return Constant(value, DOUBLE)
            case ex.StringLiteral(value):
                return Constant(value, STRING)
            case ex.IntervalUnit(name):
                return Constant(name, None)

    # mypy cannot know that the key of a method is the type of its nodes.
    _handlers: ClassVar[dict[type, Callable[..., TypedExpression]]] = {
        **dict.fromkeys(
            (
                ex.Null,
                ex.BooleanLiteral,
                ex.IntegerLiteral,
                ex.DecimalLiteral,
                ex.DoubleLiteral,
                ex.StringLiteral,
                ex.IntervalUnit,
            ),
            _literal,
        ),
        ex.Name: _name,
        ex.FieldOf: _field,
        ex.Subscript: _subscript,
        ex.Call: _call,
        ex.Star: _misplaced,
        ex.Lambda: _misplaced,
        ex.Cast: _cast,
        ex.Arithmetic: _arithmetic,
        ex.Concatenation: _concatenation,
        ex.Signed: _signed,
        ex.Comparison: _comparison,
        ex.Logical: _logical,
        ex.Not: _not,
        ex.IsNull: _is_null,
        ex.Between: _between,
        ex.In: _in,
        ex.Like: _like,
        ex.Case: _case,
        ex.ArrayOfValues: _array,
        ex.MapOfValues: _map,
        ex.StructOfValues: _struct,
    }


def _strictly(value: TypedExpression, wanted: DataType) -> TypedExpression:
    return value if value.type == wanted else Convert(value, wanted, strict=True)


def _perhaps_not(value: TypedExpression, *, negated: bool) -> TypedExpression:
    return Opposite(value) if negated else value


def _failed(message: str, node: ex.Expression) -> StatementFailed:
    return StatementFailed(message, line=node.position.line, column=node.position.column)


def _empty(what: str, least: str) -> str:
    return (
        f"{what} constructor cannot be empty. Please supply at least {least} "
        "(see https://github.com/confluentinc/ksql/issues/4239)."
    )


def _all_null(what: str, parts: str, part: str) -> str:
    return (
        f"Cannot construct {what} with all NULL {parts} "
        "(see https://github.com/confluentinc/ksql/issues/4239). "
        f"As a workaround, you may cast a NULL {part} to the desired type."
    )
