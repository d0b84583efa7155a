"""CallAnalyser: calls of functions, with the types of their lambdas and converted arguments."""

from collections.abc import Callable

from sql.analyse.common_types import UnsupportedExpression
from sql.datatypes import BIGINT, INT, DataType, decimal_of
from sql.errors import StatementFailed
from sql.expressions import (
    Constant,
    Convert,
    FunctionValue,
    LambdaFunction,
    LambdaVariable,
    TypedExpression,
)
from sql.functions.matching import (
    Argument,
    Bindings,
    LambdaArgument,
    UnitArgument,
    converts,
    filled,
)
from sql.functions.registry import FunctionRegistry, Scalar, result_of
from sql.functions.signatures import AnyDecimal, LambdaPattern, Pattern, TypeVariable
from sql.syntax import expressions as ex

Typed = Callable[[ex.Expression], TypedExpression]
LambdaBody = Callable[[tuple[LambdaVariable, ...], ex.Expression], TypedExpression]


class CallAnalyser:
    """Determines the types of function calls; the owner handles other expressions."""

    def __init__(self, functions: FunctionRegistry, typed: Typed, body: LambdaBody) -> None:
        """`body` analyses a lambda's body with the lambda's variables."""
        self._functions = functions
        self._typed = typed
        self._body = body

    def typed(self, call: ex.Call) -> TypedExpression:
        """A call of a scalar function."""
        nodes = () if call.arguments == (ex.Star(),) else call.arguments
        plain = [
            None if isinstance(each, ex.Lambda | ex.IntervalUnit) else self._typed(each)
            for each in nodes
        ]
        types = [_argument(*each) for each in zip(nodes, plain, strict=True)]
        overload, matched = self._functions.resolve(call.function, types)
        if not isinstance(overload, Scalar):
            raise _failed(f"{call.function} can not be used here", call)
        bindings = dict(matched.bindings)
        arguments: list[TypedExpression] = []
        for node, value, parameter in zip(nodes, plain, matched.parameters, strict=True):
            if isinstance(node, ex.Lambda):
                assert isinstance(parameter.pattern, LambdaPattern)
                arguments.append(self._lambda(call, node, parameter.pattern, bindings))
            elif isinstance(node, ex.IntervalUnit):
                arguments.append(Constant(node.name, None))
            else:
                assert value is not None
                arguments.append(fitted(value, parameter.pattern, bindings))
        matched = type(matched)(matched.parameters, bindings)
        result = result_of(overload, matched, [_result_argument(each) for each in arguments])
        return FunctionValue(overload, tuple(arguments), result)

    def _lambda(
        self, call: ex.Call, node: ex.Lambda, pattern: LambdaPattern, bindings: Bindings
    ) -> LambdaFunction:
        variables = []
        for name, each in zip(node.parameters, pattern.inputs, strict=True):
            type_ = filled(each, bindings)
            if type_ is None:
                raise _failed(
                    f"the type of parameter {name} in a lambda of {call.function} is unknown", node
                )
            variables.append(LambdaVariable(name, type_))
        body = self._body(tuple(variables), node.body)
        if body.type is not None:
            body = _bound(body, body.type, pattern.result, bindings, call)
        return LambdaFunction(tuple(variables), body)


def _argument(node: ex.Expression, value: TypedExpression | None) -> Argument:
    if isinstance(node, ex.Lambda):
        return LambdaArgument(len(node.parameters))
    if value is None:
        return UnitArgument()
    return value.type


def _result_argument(argument: TypedExpression) -> Argument:
    return None if isinstance(argument, LambdaFunction) else argument.type


def fitted(value: TypedExpression, pattern: Pattern, bindings: Bindings) -> TypedExpression:
    """An argument, converted to the parameter's type."""
    if value.type is None:
        return value
    if isinstance(pattern, AnyDecimal):
        wanted: DataType | None = decimal_of(value.type)
    else:
        wanted = filled(pattern, bindings)
    if wanted is None or wanted == value.type:
        return value
    return Convert(value, wanted)


def _bound(
    body: TypedExpression, given: DataType, pattern: Pattern, bindings: Bindings, call: ex.Call
) -> TypedExpression:
    """A lambda's result, converted to the signature's type; may bind a type variable."""
    if isinstance(pattern, TypeVariable):
        wanted: DataType | None = bindings.setdefault(pattern.name, given)
    else:
        wanted = filled(pattern, bindings)
    if wanted is None or wanted == given:
        return body
    if converts(given, wanted) or (given is BIGINT and wanted is INT):
        return Convert(body, wanted)
    raise UnsupportedExpression(
        f"Function '{call.function}' does not accept a lambda that returns {given}: "
        f"it should return {wanted}"
    )


def _failed(message: str, node: ex.Expression) -> StatementFailed:
    return StatementFailed(message, line=node.position.line, column=node.position.column)
