"""Schemas and columns of Avro's primitive and logical types."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from connect import data
from connect.connectors.datagen import columns
from connect.connectors.datagen.columns import Column
from connect.connectors.datagen.patterns import literal_prefix, read_pattern
from connect.connectors.datagen.properties import Properties
from connect.data import ConnectSchema
from connect.logical_values import DAY_MS, date_of, time_of, timestamp_of

# Up to the end of the year 9999, the maximum of Python's dates.
_MILLISECONDS_END = 253_402_300_800_000
_DAYS_END = 2_932_897
_FLOAT_WHOLE_END = 1 << 53  # above it, floats do not represent all integers


@dataclass(frozen=True, slots=True)
class Generated:
    """A Connect schema, the column that generates its values, and the prefix of its strings."""

    schema: ConnectSchema
    column: Column
    prefix: str = ""


def primitive(kind: str, node: Mapping[str, object], properties: Properties) -> Generated:
    """A primitive type, or the logical type of the node: days, times or decimals."""
    made = _logical(kind, node, properties)
    if made is not None:
        return made
    match kind:
        case "int":
            return Generated(data.INT32, _whole(properties, 32))
        case "long":
            return Generated(data.INT64, _whole(properties, 64))
        case "float":
            return Generated(data.FLOAT32, _fractions(properties))
        case "double":
            return Generated(data.FLOAT64, _fractions(properties))
        case "boolean":
            return Generated(data.BOOLEAN, _flags(properties))
        case "bytes":
            return Generated(data.BYTES, columns.random_bytes(*properties.lengths()))
        case "string":
            return _string(properties)
    raise properties.error(f'"{kind}" is neither an Avro type nor the name of an earlier type')


def _whole(properties: Properties, bits: int) -> Column:
    if "iteration" in properties:
        return _iteration(properties.inner("iteration"), 1 << bits - 1)
    low, end = properties.range(-(1 << bits - 1), 1 << bits - 1)
    return columns.integers(int(low), int(end))


def _fractions(properties: Properties) -> Column:
    if "iteration" in properties:
        iterated = _iteration(properties.inner("iteration"), _FLOAT_WHOLE_END)
        return lambda run: [float(str(number)) for number in iterated(run)]
    return columns.numbers(*properties.range(0.0, 1.0))


def _flags(properties: Properties) -> Column:
    if "iteration" in properties:
        first = bool(properties.inner("iteration").given.get("start"))
        return lambda run: [(index % 2 == 0) == first for index in run.indexes]
    return columns.flags(properties.number("odds", 0.5))


def _iteration(given: Properties, bound: int) -> Column:
    start = given.number("start")
    step = given.number("step", -1 if given.number("restart", start) < start else 1)
    # Without a restart, it restarts at the bounds of the type.
    restart = given.number("restart", -bound if step < 0 else bound)
    if restart == start:
        raise given.error("an iteration cannot restart at its start")
    if step == 0 or (step < 0) != (restart < start):
        raise given.error(f"an iteration with step {step} never reaches its restart")
    length = max(1, -int((start - restart) // step))
    ahead = int((given.number("initial", start) - start) // step)
    return columns.iteration(start, step, length=length, ahead=ahead)


def _string(properties: Properties) -> Generated:
    prefix, suffix = properties.text("prefix"), properties.text("suffix")
    known = prefix
    if "numbered" in properties:
        given = properties.inner("numbered")
        known += given.text("prefix")
        column = columns.numbered(given.text("prefix"), given.integer("count"))
    elif "regex" in properties:
        pattern = properties.text("regex")
        known += literal_prefix(read_pattern(pattern))
        column = columns.matching(pattern)
    else:
        column = columns.letters(*properties.lengths())
    if prefix or suffix:
        column = columns.surrounded(column, prefix, suffix)
    return Generated(data.STRING, column, known)


def _logical(kind: str, node: Mapping[str, object], properties: Properties) -> Generated | None:
    match kind, node.get("logicalType"):
        case "long", "timestamp-millis":
            low, end = properties.range(0, _MILLISECONDS_END)
            return Generated(data.timestamp(), _converted(low, end, timestamp_of))
        case "int", "date":
            low, end = properties.range(0, _DAYS_END)
            return Generated(data.date(), _converted(low, end, date_of))
        case "int", "time-millis":
            low, end = properties.range(0, DAY_MS)
            return Generated(data.time(), _converted(low, end, time_of))
        case "bytes", "decimal":
            declared = Properties(node, properties.at)
            scale = declared.integer("scale", 0)
            end = 10 ** declared.integer("precision")
            convert = _decimal_of(scale)
            return Generated(data.decimal(scale), _converted(0, end, convert))
    return None


def _converted(low: float, end: float, convert: Callable[[int], object]) -> Column:
    whole = columns.integers(int(low), int(end))
    return lambda run: [convert(number) for number in whole(run)]


def _decimal_of(scale: int) -> Callable[[int], Decimal]:
    return lambda unscaled: Decimal(unscaled).scaleb(-scale)
