"""Parses signatures."""

import re
from collections.abc import Iterator

from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    DataType,
    DecimalType,
    Field,
    StructType,
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

_TOKENS = re.compile(r"\s*(\.\.\.|->|\w+|.)")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]?")
_NAMED: dict[str, Pattern] = {
    "BOOLEAN": BOOLEAN,
    "INT": INT,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BYTES": BYTES,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
    "DECIMAL": AnyDecimal(),
    "ANY": AnyType(),
    "INTERVALUNIT": Unit(),
}


def read_signature(text: str) -> Signature:
    """Parse a signature; an invalid one is a programming error.

    >>> read_signature("LEN(text STRING) -> INT").result
    <Primitive.INT: 'INTEGER'>
    """
    return _Reader(text).signature()


class _Reader:
    """Parses from left to right; `assert` checks the syntax."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: Iterator[str] = iter(_TOKENS.findall(text.strip()))
        self._next = next(self._tokens, "")

    def signature(self) -> Signature:
        name = self._take()
        parameters: list[Parameter] = []
        self._expect("(")
        while self._next != ")":
            if parameters:
                self._expect(",")
            parameters.append(self._parameter())
        self._expect(")")
        self._expect("->")
        result = self._pattern()
        assert not self._next, f'"{self._next}" is left over in "{self._text}"'
        assert sum(each.variadic for each in parameters) <= 1, f"two variadic: {self._text}"
        return Signature(name, tuple(parameters), result)

    def _take(self) -> str:
        result, self._next = self._next, next(self._tokens, "")
        return result

    def _expect(self, symbol: str) -> None:
        found = self._take()
        assert found == symbol, f'expected "{symbol}" instead of "{found}" in "{self._text}"'

    def _parameter(self) -> Parameter:
        name, pattern = self._take(), self._pattern()
        variadic = self._next == "..."
        if variadic:
            self._take()
        return Parameter(name, pattern, variadic)

    def _pattern(self) -> Pattern:
        name = self._take()
        if name == "ARRAY":
            (element,) = self._arguments()
            return ArrayPattern(element)
        if name == "MAP":
            key, value = self._arguments()
            return MapPattern(key, value)
        if name == "LAMBDA":
            *inputs, result = self._arguments()
            return LambdaPattern(tuple(inputs), result)
        if name == "STRUCT":
            return self._struct()
        if name == "DECIMAL" and self._next == "(":
            self._expect("(")
            precision = int(self._take())
            self._expect(",")
            scale = int(self._take())
            self._expect(")")
            return DecimalType(precision, scale)
        found = _NAMED.get(name)
        if found is not None:
            return found
        assert _VARIABLE.fullmatch(name), f'"{name}" is not a type in "{self._text}"'
        return TypeVariable(name)

    def _arguments(self) -> list[Pattern]:
        self._expect("<")
        result = [self._pattern()]
        while self._next == ",":
            self._take()
            result.append(self._pattern())
        self._expect(">")
        return result

    def _struct(self) -> StructType:
        self._expect("<")
        fields: list[Field] = []
        while self._next != ">":
            if fields:
                self._expect(",")
            name, type_ = self._take(), self._pattern()
            assert isinstance(type_, DataType), f'"{name}" has no plain type in "{self._text}"'
            fields.append(Field(name, type_))
        self._expect(">")
        return StructType(tuple(fields))
