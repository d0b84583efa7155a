"""GROUP BY: collects and checks aggregates, and plans them as one step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sql.analyse.calls import fitted
from sql.analyse.expressions import NO_TYPE_OF_NULL, ExpressionAnalyser
from sql.analyse.trees import parts, walk
from sql.catalog import FormatInfo
from sql.datatypes import Column, DataType
from sql.errors import StatementFailed
from sql.expressions import ColumnValue, Constant, Convert, Negation, TypedExpression
from sql.formats import check_format
from sql.functions.registry import AggregateOverload, FunctionRegistry, Settings
from sql.plan import AggregateCall
from sql.planner.references import BOUND_NAMES
from sql.syntax import expressions as ex

AGGREGATE_NAME = "KSQL_AGG_VARIABLE_"
NO_STATE = (
    "One of the functions used in the statement has an intermediate type that the value format "
    "can not handle. Please remove the function or change the format."
)


def is_aggregate(node: ex.Expression, functions: FunctionRegistry) -> bool:
    """Whether a part of an expression is a call of an aggregate function."""
    if not isinstance(node, ex.Call) or node.function not in functions:
        return False
    return isinstance(functions.get(node.function).overloads[0], AggregateOverload)


def aggregates_in(expression: ex.Expression, functions: FunctionRegistry) -> Iterator[ex.Call]:
    """The calls of aggregate functions in an expression."""
    for node in walk(expression):
        if isinstance(node, ex.Call) and is_aggregate(node, functions):
            yield node


def with_argument(call: ex.Call, rowtime: ex.Name) -> ex.Call:
    """COUNT(*) and COUNT() count the timestamps of rows, which are never null."""
    if call.arguments in ((), (ex.Star(),)):
        return ex.Call(call.function, (rowtime,), position=call.position)
    return call


@dataclass(frozen=True, slots=True)
class GroupRules:
    """The rules for columns in SELECT, WHERE and HAVING of a query with GROUP BY."""

    functions: FunctionRegistry
    grouping: tuple[ex.Expression, ...]
    is_windowed: bool
    text: Callable[[ex.Expression], str]

    def check_select(self, expressions: Sequence[ex.Expression]) -> None:
        """Refuse columns that are neither grouped by nor aggregated."""
        wrong = [each for each in expressions if self._strays(each, "SELECT")]
        if wrong:
            raise StatementFailed(
                "Non-aggregate SELECT expression(s) not part of GROUP BY: "
                f"{', '.join(map(self.text, wrong))}\n"
                "Either add the column(s) to the GROUP BY or remove them from the SELECT."
            )

    def check_having(self, expression: ex.Expression) -> None:
        """Refuse columns that are neither grouped by nor aggregated."""
        wrong = self._strays(expression, "HAVING")
        if wrong:
            raise StatementFailed(
                "Non-aggregate HAVING expression not part of GROUP BY: "
                f"{', '.join(map(self.text, wrong))}\n"
                "Consider switching the HAVING clause to a WHERE clause before the GROUP BY."
            )

    def check_grouping(self) -> None:
        """Refuse aggregates and the bounds of windows."""
        for expression in self.grouping:
            for call in aggregates_in(expression, self.functions):
                raise StatementFailed(
                    "GROUP BY does not support aggregate functions: "
                    f"{call.function} is an aggregate function."
                )
            self._check_bounds(expression)

    def check_where(self, expression: ex.Expression) -> None:
        """Refuse the bounds of windows."""
        self._check_bounds(expression)

    def _check_bounds(self, expression: ex.Expression) -> None:
        for node in walk(expression):
            if isinstance(node, ex.Name):
                self._check_bound(node)

    def _check_bound(self, node: ex.Name) -> None:
        if self.is_windowed and node.name in BOUND_NAMES:
            raise StatementFailed(
                f"Window bounds column {self.text(node)} can only be used in the SELECT clause of "
                "windowed aggregations and can not be passed to aggregate functions.\n"
                "See https://github.com/confluentinc/ksql/issues/4397"
            )

    def _strays(self, expression: ex.Expression, clause: str) -> list[ex.Expression]:
        result: list[ex.Expression] = []
        self._collect(expression, clause, result, outer=None)
        return result

    def _collect(
        self, node: ex.Expression, clause: str, found: list[ex.Expression], *, outer: str | None
    ) -> None:
        if outer is None and node in self.grouping:
            return
        if isinstance(node, ex.Call) and is_aggregate(node, self.functions):
            if outer is not None:
                raise StatementFailed(
                    f"Aggregate functions can not be nested: {outer}({node.function}())"
                )
            outer = node.function
        if isinstance(node, ex.Name):
            if outer is not None or clause == "HAVING":
                self._check_bound(node)
            if outer is None and not (self.is_windowed and node.name in BOUND_NAMES):
                found.append(node)
            return
        for part in _parts_outside_lambdas(node):
            self._collect(part, clause, found, outer=outer)


def _parts_outside_lambdas(node: ex.Expression) -> Iterator[ex.Expression]:
    if not isinstance(node, ex.Lambda):
        yield from parts(node)
        return
    variables = set(node.parameters)
    for part in walk(node.body):
        if isinstance(part, ex.Name) and not (part.source is None and part.name in variables):
            yield part


class AggregateCalls:
    """The aggregates of a query, without duplicates."""

    def __init__(
        self,
        analyser: ExpressionAnalyser,
        functions: FunctionRegistry,
        rowtime: ex.Name,
        value_format: FormatInfo,
        settings: Settings,
    ) -> None:
        """`analyser` determines the types of arguments on the rows before the aggregation."""
        self._settings = settings
        self._analyser = analyser
        self._functions = functions
        self._rowtime = rowtime
        self._value_format = value_format
        self.calls: dict[ex.Call, AggregateCall] = {}

    def collect(self, expression: ex.Expression) -> None:
        """Add the aggregates of an expression."""
        for call in aggregates_in(expression, self._functions):
            full = with_argument(call, self._rowtime)
            if full not in self.calls:
                self.calls[full] = self._made(full)

    def replaced(self, expressions: Sequence[ex.Expression]) -> Mapping[ex.Expression, ColumnValue]:
        """The columns of the aggregation's rows by the calls that they contain."""
        places = {call: n for n, call in enumerate(self.calls)}
        result: dict[ex.Expression, ColumnValue] = {}
        for expression in expressions:
            for call in aggregates_in(expression, self._functions):
                full = with_argument(call, self._rowtime)
                column = self.calls[full].column
                result[call] = ColumnValue(places[full], column.name, column.type)
        return result

    def _made(self, call: ex.Call) -> AggregateCall:
        typed = [self._analyser.typed(each) for each in call.arguments]
        if any(each.type is None for each in typed):
            raise StatementFailed(NO_TYPE_OF_NULL)
        overload, matched = self._functions.resolve(call.function, [each.type for each in typed])
        assert isinstance(overload, AggregateOverload)
        arguments = [
            fitted(each, parameter.pattern, matched.bindings)
            for each, parameter in zip(typed, matched.parameters, strict=True)
        ]
        split = len(arguments) - overload.literals(len(arguments))
        for number, node in enumerate(call.arguments[split:], split + 1):
            if not _is_literal(node):
                raise StatementFailed(
                    f"Parameter {number} passed to function {call.function} must be a literal "
                    f"constant, but was expression: '{self._analyser.text(node)}'"
                )
        types = tuple(each.type for each in arguments if each.type is not None)
        constants = tuple(map(_constant, arguments[split:]))
        aggregator = overload.make(types, constants, self._settings)
        self._check_state(aggregator.state_type)
        column = Column(f"{AGGREGATE_NAME}{len(self.calls)}", aggregator.result_type)
        return AggregateCall(overload, tuple(arguments[:split]), constants, types, column)

    def _check_state(self, type_: DataType) -> None:
        try:
            check_format(self._value_format, [Column("STATE", type_)], is_key=False)
        except StatementFailed as error:
            raise StatementFailed(f"{NO_STATE}\n{error.message}") from error


def _is_literal(node: ex.Expression) -> bool:
    return isinstance(node, ex.Literal) or (
        isinstance(node, ex.Signed) and isinstance(node.value, ex.Literal)
    )


def _constant(value: TypedExpression) -> object:
    """The value of a literal, without implicit conversions."""
    match value:
        case Constant(value=found):
            return found
        case Negation(value=Constant(value=int() | float() | Decimal() as number)):
            return -number
        case Convert(value=inner):
            return _constant(inner)
    raise AssertionError("only literals are constants")
