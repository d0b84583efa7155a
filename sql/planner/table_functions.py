"""Table functions of a SELECT: each call is computed once, as a separate column."""

from sql.analyse.calls import fitted
from sql.analyse.expression_text import expression_text
from sql.analyse.expressions import NO_TYPE_OF_NULL, ExpressionAnalyser
from sql.analyse.trees import parts
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.expressions import TypedExpression
from sql.functions.registry import FunctionRegistry, TableOverload, result_of
from sql.syntax import expressions as ex

SYNTHETIC_NAME = "KSQL_SYNTH_"

TableCall = tuple[TableOverload, tuple[TypedExpression, ...]]


class TableCalls:
    """The calls of table functions in expressions."""

    def __init__(self, functions: FunctionRegistry) -> None:
        self._functions = functions
        self.found: list[ex.Call] = []

    def collect(self, expression: ex.Expression) -> None:
        """Add the calls in an expression."""
        self._collect(expression, outer=None, case=None)

    def _collect(self, node: ex.Expression, *, outer: str | None, case: ex.Case | None) -> None:
        if isinstance(node, ex.Call) and self._is_table_function(node):
            if outer is not None:
                raise StatementFailed(
                    f"Table functions cannot be nested: {outer}({node.function}())"
                )
            if case is not None:
                raise StatementFailed(
                    f"Table functions cannot be used in CASE: {expression_text(case)}"
                )
            outer = node.function
            if node not in self.found:
                self.found.append(node)
        if isinstance(node, ex.Case) and node.operand is None:
            case = node
        for part in parts(node):
            self._collect(part, outer=outer, case=case)

    def _is_table_function(self, call: ex.Call) -> bool:
        if call.function not in self._functions:
            return False
        return isinstance(self._functions.get(call.function).overloads[0], TableOverload)

    def made(
        self, analyser: ExpressionAnalyser
    ) -> tuple[tuple[TableCall, ...], tuple[Column, ...]]:
        """The typed calls, and the columns of their results."""
        calls: list[TableCall] = []
        columns: list[Column] = []
        for number, call in enumerate(self.found):
            typed = [analyser.typed(each) for each in call.arguments]
            if any(each.type is None for each in typed):
                raise StatementFailed(NO_TYPE_OF_NULL)
            overload, matched = self._functions.resolve(
                call.function, [each.type for each in typed]
            )
            assert isinstance(overload, TableOverload)
            arguments = tuple(
                fitted(each, parameter.pattern, matched.bindings)
                for each, parameter in zip(typed, matched.parameters, strict=True)
            )
            result = result_of(overload, matched, [each.type for each in arguments])
            calls.append((overload, arguments))
            columns.append(Column(f"{SYNTHETIC_NAME}{number}", result))
        return tuple(calls), tuple(columns)
