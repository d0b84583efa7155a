"""Differences of Avro schemas: why data written with one cannot be read with another.

The rules are those of schema resolution in Avro's specification, as its Java library checks them:

    primitive   equal, or int -> long -> float -> double, bytes <-> string
    named       unqualified names are equal, or an alias of the reader is the writer's full name
    record      each field of the reader is in the writer, by name or alias, or has a default
    enum        the reader has all symbols of the writer, or a default for the others
    fixed       sizes are equal
    union       each branch of the writer is read by some branch of the reader

One rule is stricter than Java's: a decimal must keep its scale and lose no precision, because the
bytes would silently be read as other numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from broker.errors import SchemaError
from broker.serde.schema.avro_schema import AvroSchema
from broker.serde.schema.avro_types import MISSING, NAMED, RECORDS, AvroField, AvroType

# The number of differences is limited: types that are used repeatedly multiply them.
DIFFERENCES_MAX = 100

# The types of writers that each type of reader can read, besides its own.
PROMOTIONS: dict[str, frozenset[str]] = {
    "long": frozenset(("int",)),
    "float": frozenset(("int", "long")),
    "double": frozenset(("int", "long", "float")),
    "string": frozenset(("bytes",)),
    "bytes": frozenset(("string",)),
}

DESCRIPTIONS = {
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "FIXED_SIZE_MISMATCH": (
        "The size of FIXED type field at path '{path}' in the new schema "
        "does not match with the old schema"
    ),
    "MISSING_ENUM_SYMBOLS": (
        "The new schema is missing enum symbols '{info}' at path '{path}' in the old schema"
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The field '{info}' at path '{path}' in the new schema has no default value "
        "and is missing in the old schema"
    ),
    "TYPE_MISMATCH": (
        "The type (path '{path}') of a field in the new schema does not match with the old schema"
    ),
    "MISSING_UNION_BRANCH": (
        "The new schema is missing a type inside a union field at path '{path}' in the old schema"
    ),
}


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason, its path in the reader's schema, and details."""

    kind: str
    path: str
    info: str

    def __str__(self) -> str:
        """The message of Confluent's registry."""
        description = DESCRIPTIONS[self.kind].format(path=self.path or "/", info=self.info)
        return (
            f"{{errorType:'{self.kind}', description:'{description}', "
            f"additionalInfo:'{self.info}'}}"
        )


def differences(new: AvroSchema, old: AvroSchema) -> list[str]:
    """The reasons why data written with `old` cannot be read with `new`."""
    try:
        return [str(each) for each in ReaderCheck().check(new.root, old.root, "")]
    except RecursionError as error:
        raise SchemaError("the schemas are nested too deeply to be compared") from error


class ReaderCheck:
    """Compares each pair of types once; a pair inside itself counts as compatible."""

    def __init__(self) -> None:
        self._compatible: set[tuple[int, int]] = set()
        # With the path where the pair was compared, because it may occur in other places.
        self._incompatible: dict[tuple[int, int], tuple[str, list[Incompatibility]]] = {}
        # Compatible if the pairs being compared are; assumptions inside a cycle are confirmed only
        # when the whole cycle is done.
        self._provisional: dict[tuple[int, int], None] = {}
        self._under_way: set[tuple[int, int]] = set()
        self._assumptions = 0

    def check(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        """The reasons why the reader cannot read the writer's data."""
        pair = (id(reader), id(writer))
        if pair in self._compatible:
            return []
        if known := self._incompatible.get(pair):
            start, found = len(known[0]), known[1]
            return [replace(each, path=path + each.path[start:]) for each in found]
        if pair in self._under_way or pair in self._provisional:
            self._assumptions += 1
            return []
        self._under_way.add(pair)
        assumed, kept = self._assumptions, len(self._provisional)
        found = list(islice(self._compare(reader, writer, path), DIFFERENCES_MAX))
        self._under_way.remove(pair)
        if found:
            self._incompatible[pair] = (path, found)
            while len(self._provisional) > kept:  # they may depend on this pair
                self._provisional.popitem()
        elif assumed == self._assumptions:
            self._compatible.add(pair)
        else:
            self._provisional[pair] = None
        if not self._under_way:
            self._compatible.update(self._provisional)
            self._provisional.clear()
        return found

    def _compare(self, reader: AvroType, writer: AvroType, path: str) -> Iterator[Incompatibility]:
        if writer.kind == "union":
            yield from self._writer_union(reader, writer, path)
        elif reader.kind == "union":
            if not self._readable(reader, writer, path):
                yield lacking(writer, path)
        elif kind_of(reader) != kind_of(writer):
            if writer.kind not in PROMOTIONS.get(reader.kind, ()):
                yield mismatch(reader, writer, path)
        elif reader.kind in NAMED:
            yield from self._named(reader, writer, path)
        elif reader.element is not None and writer.element is not None:
            word = "items" if reader.kind == "array" else "values"
            yield from self.check(reader.element, writer.element, f"{path}/{word}")
        else:
            yield from decimal_mismatch(reader, writer, path)

    def _writer_union(
        self, reader: AvroType, writer: AvroType, path: str
    ) -> Iterator[Incompatibility]:
        for index, branch in enumerate(writer.branches):
            if reader.kind != "union":
                yield from self.check(reader, branch, path)
            elif not self._readable(reader, branch, path):
                yield lacking(branch, f"{path}/{index}")

    def _readable(self, reader: AvroType, writer: AvroType, path: str) -> bool:
        return any(not self.check(branch, writer, path) for branch in reader.branches)

    def _named(self, reader: AvroType, writer: AvroType, path: str) -> Iterator[Incompatibility]:
        if not same_name(reader, writer):
            yield Incompatibility("NAME_MISMATCH", f"{path}/name", f"expected: {writer.name}")
        if reader.kind == "fixed":
            if reader.size != writer.size:
                info = f"expected: {writer.size}, found: {reader.size}"
                yield Incompatibility("FIXED_SIZE_MISMATCH", f"{path}/size", info)
            yield from decimal_mismatch(reader, writer, path)
        elif reader.kind == "enum":
            missing = set(writer.symbols) - set(reader.symbols)
            if missing and reader.symbol_default is None:
                info = f"[{', '.join(sorted(missing))}]"
                yield Incompatibility("MISSING_ENUM_SYMBOLS", f"{path}/symbols", info)
        else:
            yield from self._fields(reader, writer, path)

    def _fields(self, reader: AvroType, writer: AvroType, path: str) -> Iterator[Incompatibility]:
        written = {each.name: each for each in writer.fields}
        for index, field in enumerate(reader.fields):
            place = f"{path}/fields/{index}"
            source = written_field(field, written)
            if source is not None:
                yield from self.check(field.type, source.type, f"{place}/type")
            elif field.default is MISSING:
                yield Incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", place, field.name)


def written_field(field: AvroField, written: dict[str, AvroField]) -> AvroField | None:
    """The writer's field from which a reader's field is read."""
    for name in (field.name, *field.aliases):
        if name in written:
            return written[name]
    return None


def same_name(reader: AvroType, writer: AvroType) -> bool:
    """Whether a named type of the reader matches one of the writer."""
    short = writer.name.rpartition(".")[2]
    return reader.name.rpartition(".")[2] == short or writer.name in reader.aliases


def kind_of(node: AvroType) -> str:
    """The kind; errors of protocols count as records."""
    return "record" if node.kind in RECORDS else node.kind


def decimal_mismatch(reader: AvroType, writer: AvroType, path: str) -> Iterator[Incompatibility]:
    """Numbers that would be read with another scale, or that may not fit."""
    wanted, given = reader.decimal, writer.decimal
    if wanted is None or given is None:
        return
    if wanted[1] != given[1] or wanted[0] < given[0]:
        info = f"reader decimal{wanted} not compatible with writer decimal{given}"
        yield Incompatibility("TYPE_MISMATCH", path, info)


def mismatch(reader: AvroType, writer: AvroType, path: str) -> Incompatibility:
    """Types that cannot be converted to each other."""
    info = (
        f"reader type: {kind_of(reader).upper()} "
        f"not compatible with writer type: {kind_of(writer).upper()}"
    )
    return Incompatibility("TYPE_MISMATCH", path, info)


def lacking(writer: AvroType, path: str) -> Incompatibility:
    """A type of the writer that no branch of the reader can read."""
    info = f"reader union lacking writer type: {kind_of(writer).upper()}"
    return Incompatibility("MISSING_UNION_BRANCH", path, info)
