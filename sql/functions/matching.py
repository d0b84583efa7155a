"""Overload resolution: the overload of a call, and the types of its parameters.

An argument is a type, None for a NULL without a type, LambdaArgument, or UnitArgument. Signatures
are matched with the exact types first, then with implicit conversions (INT to BIGINT to DECIMAL to
DOUBLE, and STRING to times and BYTES). Of several matching overloads, these are preferred, in this
order: without variadic parameter, with more fixed parameters, with fewer type variables, without
ANY, with a later variadic parameter. If two are equal, the call is ambiguous.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sql.datatypes import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    decimal_of,
)
from sql.functions.signatures import (
    AnyDecimal,
    AnyType,
    ArrayPattern,
    LambdaPattern,
    MapPattern,
    Parameter,
    Pattern,
    Signature,
    TypeVariable,
    Unit,
)


@dataclass(frozen=True, slots=True)
class LambdaArgument:
    """A lambda, whose types come from the other arguments."""

    parameters: int

    def __str__(self) -> str:
        return "LAMBDA"


@dataclass(frozen=True, slots=True)
class UnitArgument:
    """An interval unit."""

    def __str__(self) -> str:
        return "INTERVALUNIT"


Argument = DataType | LambdaArgument | UnitArgument | None
Bindings = dict[str, DataType]


@dataclass(frozen=True, slots=True)
class Match:
    """A matching signature: the parameter of each argument, and the types of its variables."""

    parameters: tuple[Parameter, ...]
    bindings: Bindings


def match(signature: Signature, arguments: Sequence[Argument], *, convert: bool) -> Match | None:
    """The match of a signature, or None."""
    parameters = _aligned(signature.parameters, len(arguments))
    if parameters is None:
        return None
    bindings: Bindings = {}
    # Lambdas come last: the other arguments determine the types of their variables.
    order = sorted(
        range(len(arguments)), key=lambda each: isinstance(arguments[each], LambdaArgument)
    )
    for index in order:
        if not _fits(parameters[index].pattern, arguments[index], bindings, convert=convert):
            return None
    return Match(parameters, bindings)


def _aligned(parameters: tuple[Parameter, ...], count: int) -> tuple[Parameter, ...] | None:
    """One parameter per argument; a variadic one stands for any number."""
    place = next((n for n, each in enumerate(parameters) if each.variadic), None)
    if place is None:
        return parameters if len(parameters) == count else None
    repeated = count - len(parameters) + 1
    if repeated < 0:
        return None
    return (*parameters[:place], *[parameters[place]] * repeated, *parameters[place + 1 :])


def _fits(pattern: Pattern, argument: Argument, bindings: Bindings, *, convert: bool) -> bool:
    match pattern:
        case Unit():
            return isinstance(argument, UnitArgument)
        case LambdaPattern(inputs=inputs):
            return isinstance(argument, LambdaArgument) and argument.parameters == len(inputs)
    if isinstance(argument, LambdaArgument | UnitArgument):
        return False
    if argument is None:
        return True
    match pattern:
        case AnyType():
            return True
        case AnyDecimal():
            return isinstance(argument, DecimalType) or (convert and argument in (INT, BIGINT))
        case TypeVariable(name=name):
            return _bind(name, argument, bindings, convert=convert)
        case ArrayPattern(element=element):
            return isinstance(argument, ArrayType) and _fits(
                element, argument.element, bindings, convert=convert
            )
        case MapPattern(key=key, value=value):
            return (
                isinstance(argument, MapType)
                and _fits(key, argument.key, bindings, convert=convert)
                and _fits(value, argument.value, bindings, convert=convert)
            )
        case _:
            return argument == pattern or (convert and _becomes(argument, pattern))


def _becomes(given: DataType, wanted: DataType) -> bool:
    """Whether an argument can be converted for a parameter, including strings to times or bytes."""
    if given is STRING:
        return wanted in (DATE, TIME, TIMESTAMP, BYTES)
    return converts(given, wanted)


def _bind(name: str, argument: DataType, bindings: Bindings, *, convert: bool) -> bool:
    known = bindings.setdefault(name, argument)
    if known == argument:
        return True
    if not convert:
        return False
    if converts(argument, known):
        return True
    if converts(known, argument):
        bindings[name] = argument
        return True
    if isinstance(known, DecimalType) and isinstance(argument, DecimalType):
        bindings[name] = wider_decimal(known, argument)
        return True
    return False


def wider_decimal(first: DecimalType, second: DecimalType) -> DecimalType:
    """The decimal type for the values of both."""
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return DecimalType(whole + scale, scale)


def converts(given: DataType, wanted: DataType) -> bool:
    """Whether values of one type are implicitly converted to another."""
    if given == wanted:
        return True
    if wanted is DOUBLE:
        return given in (INT, BIGINT) or isinstance(given, DecimalType)
    if wanted is BIGINT:
        return given is INT
    if isinstance(wanted, DecimalType):
        if given in (INT, BIGINT) or isinstance(given, DecimalType):
            held = decimal_of(given)
            return (
                held.scale <= wanted.scale
                and held.precision - held.scale <= wanted.precision - wanted.scale
            )
        return False
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return converts(given.element, wanted.element)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return converts(given.key, wanted.key) and converts(given.value, wanted.value)
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        types = {each.name: each.type for each in wanted.fields}
        return all(
            each.name in types and converts(each.type, types[each.name]) for each in given.fields
        )
    return False


def filled(pattern: Pattern, bindings: Bindings) -> DataType | None:
    """The type of a pattern with these variables; None if one is unknown."""
    match pattern:
        case TypeVariable(name=name):
            return bindings.get(name)
        case ArrayPattern(element=element):
            inner = filled(element, bindings)
            return None if inner is None else ArrayType(inner)
        case MapPattern(key=key, value=value):
            keys, values = filled(key, bindings), filled(value, bindings)
            return None if keys is None or values is None else MapType(keys, values)
        case AnyDecimal() | AnyType() | Unit() | LambdaPattern():
            return None
        case _:
            return pattern


def rank(signature: Signature) -> tuple[bool, int, int, bool, int]:
    """Smaller is preferred."""
    parameters = signature.parameters
    places = [n for n, each in enumerate(parameters) if each.variadic]
    any_variadic = any(isinstance(parameters[n].pattern, AnyType) for n in places)
    variable = sum(_has_variable(each.pattern) for each in parameters) + any_variadic
    fixed = len(parameters) - len(places)
    return bool(places), -fixed, variable, any_variadic, -places[0] if places else 0


def _has_variable(pattern: Pattern) -> bool:
    match pattern:
        case TypeVariable():
            return True
        case ArrayPattern(element=element):
            return _has_variable(element)
        case MapPattern(key=key, value=value):
            return _has_variable(key) or _has_variable(value)
        case LambdaPattern(inputs=inputs, result=result):
            return any(map(_has_variable, (*inputs, result)))
        case _:
            return False
