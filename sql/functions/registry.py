"""Functions, their overloads, and families, which declare them.

A family's module creates a `Family` and declares each overload with a signature:

    strings = Family("STRING")

    @strings.scalar("LPAD(text STRING, length INT, padding STRING) -> STRING",
                    "Pads a string on the left to a length.")
    def lpad(text: str, length: int, padding: str) -> str | None: ...

Implementations take and return Python values of sql/datatypes.py; lambdas are Python functions,
interval units their upper-case names. With a null argument, the result is null and the function is
not called, unless `nulls=True`. An exception is logged, and the column becomes null. If the type of
the result depends on those of the arguments (decimals), `result_type` computes it; if the
implementation does, `typed` creates it once per call in a statement. Functions of the time or of
random numbers are declared by `machine_scalar`, with a function that creates the implementation for
a machine; the registry of an engine has those of the engine's machine.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from broker.machine import Machine
from sql.datatypes import DataType, DecimalType
from sql.errors import SqlError, StatementFailed
from sql.functions.matching import Argument, Match, filled, match, rank
from sql.functions.signature_text import read_signature
from sql.functions.signatures import AnyDecimal, Signature

# Any: the signatures define the types of arguments and results.
Implementation = Callable[..., Any]
ResultType = Callable[[tuple[DataType, ...]], DataType]
# Creates an implementation from the types of the arguments.
Typed = Callable[[tuple[DataType, ...]], Implementation]
# Creates an implementation with the time and random numbers of a machine.
OnMachine = Callable[[Machine], Implementation]

C = TypeVar("C", bound=Implementation)
M = TypeVar("M", bound="MakeAggregator")
F = TypeVar("F", bound=OnMachine)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One overload of a scalar function."""

    signature: Signature
    call: Implementation
    nulls: bool = False  # whether it is called with nulls
    result_type: ResultType | None = None
    # Whether two calls with the same arguments may differ (RANDOM, UUID, the clock).
    volatile: bool = False
    # Creates an implementation for known types of arguments, instead of `call`.
    typed: Typed | None = None
    # Creates `call` for another machine.
    on_machine: OnMachine | None = None

    def on(self, machine: Machine) -> "Scalar":
        """The overload with the time and random numbers of a machine."""
        return self if self.on_machine is None else replace(self, call=self.on_machine(machine))

    def implementation(self, types: Sequence[DataType | None]) -> Implementation:
        """The implementation for arguments of these types; None is the type of NULL."""
        known = tuple(each for each in types if each is not None)
        if self.typed is None or len(known) < len(types):
            return self.call
        return self.typed(known)


class Aggregator(Protocol):
    """A running aggregate; states are values of `state_type`, so that they can be stored."""

    @property
    def state_type(self) -> DataType:
        """The type of its states."""
        ...

    @property
    def result_type(self) -> DataType:
        """The type of its results."""
        ...

    # Any: the properties and the signature define the types of states and values.
    def initial(self) -> Any:
        """The state without rows."""
        ...

    def add(self, state: Any, *values: Any) -> Any:
        """The state with one more row; it may modify and return its argument."""
        ...

    def merge(self, left: Any, right: Any) -> Any:
        """The state of two merged sessions."""
        ...

    def result(self, state: Any) -> Any:
        """The result of a state."""
        ...


class UndoableAggregator(Aggregator, Protocol):
    """An aggregate that can remove rows: for aggregations of tables."""

    def undo(self, state: Any, *values: Any) -> Any:
        """The state without a row."""
        ...


# The settings of the query, by their names: ksql.functions.collect_list.limit and the like.
Settings = Mapping[str, object]
# Creates an aggregator from the types of all arguments, the values of the literals at the end of
# the call (see `AggregateOverload.literals`) and the query's settings.
MakeAggregator = Callable[[tuple[DataType, ...], tuple[object, ...], Settings], Aggregator]


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    """One overload of an aggregate function; its last `constants` parameters are literals."""

    signature: Signature
    make: MakeAggregator
    constants: int = 0
    undoable: bool = False

    def literals(self, arguments: int) -> int:
        """The number of literals at the end of a call."""
        parameters = self.signature.parameters
        columns = len(parameters) - self.constants
        if any(each.variadic for each in parameters[columns:]):
            return arguments - columns
        return self.constants


@dataclass(frozen=True, slots=True)
class TableOverload:
    """One overload of a table function; the signature's result is that of one row."""

    signature: Signature
    call: Implementation  # returns a list, or None for no rows
    nulls: bool = False
    result_type: ResultType | None = None


Overload = Scalar | AggregateOverload | TableOverload


@dataclass(slots=True)
class Function:
    """All overloads of a name; they are all of one kind."""

    name: str
    category: str
    description: str
    overloads: list[Overload] = field(default_factory=list)
    author: str = "Millstream"
    version: str = ""

    @property
    def shown(self) -> str:
        """The name as declared, as errors show it."""
        return self.overloads[0].signature.name


@dataclass(slots=True)
class Family:
    """The functions of one category."""

    category: str
    functions: dict[str, Function] = field(default_factory=dict)
    # The file or folder that they were loaded from, if any.
    place: str | None = None

    def scalar(
        self,
        signature: str | Signature,
        description: str = "",
        *,
        nulls: bool = False,
        volatile: bool = False,
        result_type: ResultType | None = None,
        typed: Typed | None = None,
    ) -> Callable[[C], C]:
        """Declare an overload of a scalar function."""

        def declare(call: C) -> C:
            read = read_signature(signature) if isinstance(signature, str) else signature
            self._add(read, description, Scalar(read, call, nulls, result_type, volatile, typed))
            return call

        return declare

    def machine_scalar(
        self, signature: str, description: str = "", *, volatile: bool = False
    ) -> Callable[[F], F]:
        """Declare an overload of a scalar function of the time or of random numbers."""

        def declare(make: F) -> F:
            read = read_signature(signature)
            overload = Scalar(read, make(Machine()), volatile=volatile, on_machine=make)
            self._add(read, description, overload)
            return make

        return declare

    def aggregate(
        self,
        signature: str | Signature,
        description: str = "",
        *,
        constants: int = 0,
        undoable: bool = False,
    ) -> Callable[[M], M]:
        """Declare an overload of an aggregate function."""

        def declare(make: M) -> M:
            read = read_signature(signature) if isinstance(signature, str) else signature
            self._add(read, description, AggregateOverload(read, make, constants, undoable))
            return make

        return declare

    def table(
        self,
        signature: str | Signature,
        description: str = "",
        *,
        nulls: bool = False,
        result_type: ResultType | None = None,
    ) -> Callable[[C], C]:
        """Declare an overload of a table function."""

        def declare(call: C) -> C:
            read = read_signature(signature) if isinstance(signature, str) else signature
            self._add(read, description, TableOverload(read, call, nulls, result_type))
            return call

        return declare

    def _add(self, signature: Signature, description: str, overload: Overload) -> None:
        name = signature.name.upper()
        function = self.functions.setdefault(name, Function(name, self.category, description))
        assert not function.overloads or type(function.overloads[0]) is type(overload), name
        function.description = function.description or description
        function.overloads.append(overload)


class FunctionRegistry:
    """All functions by their upper-case names."""

    def __init__(self, families: Iterable[Family]) -> None:
        """Add the functions of families; names must be unique."""
        self._functions: dict[str, Function] = {}
        # Where other processes load user-defined functions from.
        self.places: tuple[str, ...] = ()
        for family in families:
            if family.place is not None:
                self.places += (family.place,)
            self.add(family.functions.values())

    def on(self, machine: Machine) -> "FunctionRegistry":
        """The same functions with the time and random numbers of a machine."""
        result = FunctionRegistry(())
        result.places = self.places
        result.add(_on_machine(function, machine) for function in self._functions.values())
        return result

    def add(self, functions: Iterable[Function]) -> None:
        """Add functions; names must be unique."""
        for function in functions:
            if function.name in self._functions:
                raise SqlError(
                    f'function "{function.name}" is defined twice', hint="rename one of them"
                )
            self._functions[function.name] = function

    def get(self, name: str) -> Function:
        """The function of a name, in any case."""
        result = self._functions.get(name.upper())
        if result is None:
            raise StatementFailed(f"Can't find any functions with the name '{name}'")
        return result

    def __contains__(self, name: str) -> bool:
        return name.upper() in self._functions

    def __iter__(self) -> Iterator[Function]:
        """All functions, sorted by name."""
        return iter(sorted(self._functions.values(), key=lambda each: each.name))

    def resolve(self, name: str, arguments: Sequence[Argument]) -> tuple[Overload, Match]:
        """The overload of a call; StatementFailed lists the available ones."""
        function = self.get(name)
        for convert in (False, True):
            found = [
                (overload, matched)
                for overload in function.overloads
                if (matched := match(overload.signature, arguments, convert=convert)) is not None
            ]
            if found:
                ranks = sorted(rank(overload.signature) for overload, _ in found)
                if len(ranks) > 1 and ranks[0] == ranks[1]:
                    raise _ambiguous(function, arguments)
                return min(found, key=lambda each: rank(each[0].signature))
        raise _not_accepted(function, arguments)


def _on_machine(function: Function, machine: Machine) -> Function:
    if not any(isinstance(each, Scalar) and each.on_machine for each in function.overloads):
        return function
    overloads = [
        each.on(machine) if isinstance(each, Scalar) else each for each in function.overloads
    ]
    return replace(function, overloads=overloads)


def _ambiguous(function: Function, arguments: Sequence[Argument]) -> StatementFailed:
    return StatementFailed(
        f"Function '{function.shown}' cannot be resolved due to ambiguous method parameters "
        f"{_shown(arguments)}.\nUse CAST() to explicitly cast your parameters to one of the "
        f"supported function calls.\nValid function calls are:\n{_calls(function)}"
    )


def _not_accepted(function: Function, arguments: Sequence[Argument]) -> StatementFailed:
    return StatementFailed(
        f"Function '{function.shown}' does not accept parameters {_shown(arguments)}.\n"
        f"Valid alternatives are:\n{_calls(function)}"
    )


def _shown(arguments: Sequence[Argument]) -> str:
    return f"({', '.join('null' if each is None else str(each) for each in arguments)})"


def _calls(function: Function) -> str:
    calls = "\n".join(str(each.signature) for each in function.overloads)
    return (
        f"{calls}\nFor detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def result_of(
    overload: Scalar | TableOverload, matched: Match, types: Sequence[Argument]
) -> DataType:
    """The type of the result of a call, once all variables are bound."""
    if overload.result_type is not None:
        plain = tuple(each for each in types if isinstance(each, DataType))
        return overload.result_type(plain)
    result = filled(overload.signature.result, matched.bindings)
    if result is not None:
        return result
    decimals = [each for each in types if isinstance(each, DecimalType)]
    if isinstance(overload.signature.result, AnyDecimal) and decimals:
        return decimals[0]
    raise StatementFailed(
        f"the result of {overload.signature.name} has no type: its arguments are all NULL"
    )
