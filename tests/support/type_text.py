"""Parses column types such as `ARRAY<STRUCT<ID INT, `name` VARCHAR>>`; the inverse of str()."""

import re
from dataclasses import dataclass
from typing import NoReturn

from broker.errors import SchemaError
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
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)

DEPTH_MAX = 64
TEXT_LENGTH_MAX = 1_000_000

NAMES: dict[str, Primitive] = {
    "BOOLEAN": BOOLEAN,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "VARCHAR": STRING,
    "BYTES": BYTES,
    "TIME": TIME,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
}
TOKEN = re.compile(
    r"""\s*(?:
        (?P<word>[A-Za-z_][A-Za-z0-9_@]*)
        | (?P<number>[0-9]{1,10}(?![A-Za-z0-9_@]))
        | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
        | (?P<sign>[<>(),])
        | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


def parse_type(text: str) -> DataType:
    """Parse a type; raise SchemaError, with the position, if it is invalid."""
    if len(text) > TEXT_LENGTH_MAX:
        raise SchemaError(f"the type has more than {TEXT_LENGTH_MAX} characters")
    reader = _Reader(text)
    found = reader.read_type(depth=0)
    if reader.token.kind != "end":
        reader.refuse("the end of the type")
    return found


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self.token = self._next()

    def _next(self) -> _Token:
        found = TOKEN.match(self._text, self._offset)
        if found is None or found.lastgroup is None:
            raise SchemaError("the type cannot be parsed", at=self._place(self._offset))
        self._offset = found.end()
        return _Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))

    def _place(self, offset: int) -> str:
        return f"character {offset + 1}: {self._text[offset : offset + 40]}"

    def refuse(self, wanted: str) -> NoReturn:
        """Raise an error with the expected and the current token."""
        got = f'"{self.token.text[:40]}"' if self.token.kind != "end" else "the end"
        raise SchemaError(f"expected {wanted}, found {got}", at=self._place(self.token.at))

    def _take(self, kind: str, wanted: str) -> str:
        token = self.token
        if token.kind != kind:
            self.refuse(wanted)
        self.token = self._next()
        return token.text

    def _take_sign(self, sign: str) -> None:
        if self.token.kind != "sign" or self.token.text != sign:
            self.refuse(f'"{sign}"')
        self.token = self._next()

    def _is_sign(self, sign: str) -> bool:
        return self.token.kind == "sign" and self.token.text == sign

    def read_type(self, depth: int) -> DataType:
        if depth > DEPTH_MAX:
            raise SchemaError(f"types are nested more than {DEPTH_MAX} deep")
        if self.token.kind != "word":
            self.refuse("a type")
        name = self.token.text.upper()
        if name in NAMES:
            self.token = self._next()
            if NAMES[name] is STRING and self._is_sign("("):
                self._read_length()
            return NAMES[name]
        if name not in ("DECIMAL", "ARRAY", "MAP", "STRUCT"):
            raise SchemaError(
                f'unknown type "{self.token.text[:40]}"',
                at=self._place(self.token.at),
                hint=f"types are {', '.join(sorted(NAMES))}, DECIMAL, ARRAY, MAP and STRUCT",
            )
        self.token = self._next()
        return self._read_parameters(name, depth + 1)

    def _read_length(self) -> None:
        # Lengths are accepted, as in other dialects, and ignored.
        self._take_sign("(")
        if self.token.kind == "word" and self.token.text.upper() == "STRING":
            self.token = self._next()
        else:
            self._take("number", "a length")
        self._take_sign(")")

    def _read_parameters(self, name: str, depth: int) -> DataType:
        if name == "DECIMAL":
            return self._read_decimal()
        self._take_sign("<")
        found: DataType
        if name == "ARRAY":
            found = ArrayType(self.read_type(depth))
        elif name == "MAP":
            key = self.read_type(depth)
            self._take_sign(",")
            found = MapType(key, self.read_type(depth))
        else:
            found = StructType(self._read_fields(depth))
        self._take_sign(">")
        return found

    def _read_decimal(self) -> DecimalType:
        at = self._place(self.token.at)
        self._take_sign("(")
        precision = int(self._take("number", "a precision"))
        self._take_sign(",")
        scale = int(self._take("number", "a scale"))
        self._take_sign(")")
        try:
            return DecimalType(precision, scale)
        except ValueError as error:
            raise SchemaError(str(error), at=at) from None

    def _read_fields(self, depth: int) -> tuple[Field, ...]:
        if self._is_sign(">"):
            return ()
        fields = [self._read_field(depth)]
        while self._is_sign(","):
            self.token = self._next()
            fields.append(self._read_field(depth))
        names = {each.name for each in fields}
        if len(names) < len(fields):
            raise SchemaError("two fields of a STRUCT have the same name")
        return tuple(fields)

    def _read_field(self, depth: int) -> Field:
        if self.token.kind == "quoted":
            quote = self.token.text[0]
            name = self.token.text[1:-1].replace(quote * 2, quote)
            self.token = self._next()
        else:
            name = self._take("word", "a field's name").upper()
        return Field(name, self.read_type(depth))
