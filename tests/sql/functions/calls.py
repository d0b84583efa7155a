"""Calls of functions as a query makes them: the overload is found, nulls are looked after."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import FunctionType

from broker.machine import Machine
from sql.datatypes import BIGINT, BOOLEAN, BYTES, DOUBLE, INT, STRING, DataType, DecimalType
from sql.functions.builtin import builtin_functions
from sql.functions.matching import Argument, LambdaArgument, filled
from sql.functions.registry import Scalar, TableOverload, result_of
from sql.functions.signature_text import read_signature


def type_(text: str) -> DataType:
    """The type of a text: "ARRAY<INT>"."""
    found = filled(read_signature(f"F() -> {text}").result, {})
    assert found is not None, f"{text} is no whole type"
    return found


@dataclass(frozen=True, slots=True)
class Typed:
    """A value of a type that cannot be seen from it."""

    value: object
    type: DataType | None


def typed(text: str, value: object) -> Typed:
    """A value of the type of a text."""
    return Typed(value, type_(text))


def argument_type(value: object) -> Argument:
    """The type of a literal."""
    match value:
        case Typed():
            return value.type
        case bool():
            return BOOLEAN
        case int():
            return INT if -(2**31) <= value < 2**31 else BIGINT
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BYTES
        case Decimal():
            digits = value.as_tuple()
            assert isinstance(digits.exponent, int)
            return DecimalType(max(len(digits.digits), -digits.exponent, 1), -digits.exponent)
        case None:
            return None
    assert isinstance(value, FunctionType), value
    return LambdaArgument(value.__code__.co_argcount)


def call(name: str, *arguments: object, machine: Machine | None = None) -> object:
    """What a call gives; ValueError and the like are what a query would log."""
    types = [argument_type(each) for each in arguments]
    functions = builtin_functions() if machine is None else builtin_functions().on(machine)
    overload, _ = functions.resolve(name, types)
    assert isinstance(overload, Scalar | TableOverload)
    values = [each.value if isinstance(each, Typed) else each for each in arguments]
    if not overload.nulls and None in values:
        return None
    if isinstance(overload, TableOverload):
        return overload.call(*values)
    plain = [each if isinstance(each, DataType) else None for each in types]
    return overload.implementation(plain)(*values)


def result_type(name: str, *arguments: str) -> DataType:
    """The type of a call's result, for arguments of types."""
    types: Sequence[Argument] = [type_(each) for each in arguments]
    overload, matched = builtin_functions().resolve(name, types)
    assert isinstance(overload, Scalar | TableOverload)
    return result_of(overload, matched, types)


def same(found: object, wanted: object) -> bool:
    """Equal in value and type, NaN too, and decimals with all their digits."""
    if isinstance(wanted, float) and isinstance(found, float):
        if math.isnan(wanted) or math.isnan(found):
            return math.isnan(wanted) and math.isnan(found)
        return math.isclose(found, wanted, rel_tol=1e-12) and math.copysign(
            1, found
        ) == math.copysign(1, wanted)
    if isinstance(wanted, Decimal) and isinstance(found, Decimal):
        return found.as_tuple() == wanted.as_tuple()
    return type(found) is type(wanted) and found == wanted
