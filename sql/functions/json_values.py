"""Functions of JSON in strings."""

from collections.abc import Callable
from decimal import Decimal

from broker.java.times import date_text, time_text, timestamp_text
from sql.datatypes import DATE, TIME, TIMESTAMP, ArrayType, DataType, MapType, StructType
from sql.functions.bytes_values import from_bytes
from sql.functions.json_documents import MISSING, document_text, follow, parse_path, read_document
from sql.functions.registry import Family

documents = Family("JSON")


def _piece(value: object) -> str:
    """A part of a document as a string: strings without quotes, others as JSON."""
    return value if type(value) is str else document_text(value)


@documents.scalar(
    "EXTRACTJSONFIELD(json STRING, path STRING) -> STRING",
    "The part of a JSON document at a path such as $.items[0].name.",
)
def extract_json_field(text: str, path: str) -> str | None:
    """Strings without quotes, other values as JSON; null if there is no value at the path."""
    steps = parse_path(path)
    found = follow(read_document(text), steps)
    if found is MISSING:
        return None if steps else ""
    return _piece(found)


@documents.scalar(
    "JSON_ARRAY_CONTAINS(json STRING, value T) -> BOOLEAN",
    "Whether a JSON array contains a value of the same type.",
    nulls=True,
)
def json_array_contains(text: str | None, value: object) -> bool | None:
    """Whether an element equals the value: integers are not doubles; null is a value."""
    if text is None:
        return None
    try:
        found = read_document(text)
    except ValueError:
        return False
    if type(found) is not list:
        return False
    kind = type(value)
    if kind is float:
        return any(type(each) is Decimal and float(each) == value for each in found)
    return kind is not Decimal and any(type(each) is kind and each == value for each in found)


@documents.scalar(
    "JSON_ARRAY_LENGTH(json STRING) -> INT", "The number of elements of a JSON array."
)
def json_array_length(text: str) -> int | None:
    """Null if it is not an array."""
    found = read_document(text)
    return len(found) if isinstance(found, list) else None


@documents.scalar("JSON_KEYS(json STRING) -> ARRAY<STRING>", "The keys of a JSON object.")
def json_keys(text: str) -> list[str] | None:
    """Null if it is not an object."""
    found = read_document(text)
    return list(found) if isinstance(found, dict) else None


@documents.scalar(
    "JSON_RECORDS(json STRING) -> MAP<STRING, STRING>",
    "The keys and values of a JSON object as a map.",
)
def json_records(text: str) -> dict[str, str] | None:
    """Null if it is not an object."""
    found = read_document(text)
    if not isinstance(found, dict):
        return None
    return {name: _piece(value) for name, value in found.items()}


@documents.scalar(
    "JSON_ITEMS(json STRING) -> ARRAY<STRING>", "The elements of a JSON array, each as JSON."
)
def json_items(text: str) -> list[str]:
    found = read_document(text)
    if not isinstance(found, list):
        raise ValueError(f"Invalid JSON format:{text}")
    return [document_text(each) for each in found]


@documents.scalar(
    "JSON_CONCAT(json STRING...) -> STRING",
    "Concatenates JSON values: objects are merged, other values become elements of an array.",
    nulls=True,
)
def json_concat(*values: str | None) -> str | None:
    """All objects merged, or everything as one array."""
    found = []
    for text in values:
        document = MISSING if text is None else read_document(text)
        if document is MISSING:
            return None
        found.append(document)
    if len(found) == 1:
        return document_text(found[0], plain=True)
    merged: dict[str, object] = {}
    for each in found:
        if not isinstance(each, dict):
            break
        merged.update(each)
    else:
        return document_text(merged, plain=True)
    elements: list[object] = []
    for each in found:
        elements += each if isinstance(each, list) else [each]
    return document_text(elements, plain=True)


@documents.scalar(
    "IS_JSON_STRING(text STRING) -> BOOLEAN", "Whether a string is valid JSON.", nulls=True
)
def is_json_string(text: str | None) -> bool:
    """Whether a string is a JSON value; false for null."""
    if text is None:
        return False
    try:
        return read_document(text) is not MISSING
    except ValueError:
        return False


@documents.scalar(
    "TO_JSON_STRING(value T) -> STRING",
    "Converts a value to JSON.",
    nulls=True,
    typed=lambda types: json_writer(types[0]),
)
def to_json_string(value: object) -> str:
    """JSON without knowing the type: times are numbers."""
    return document_text(_prepared(value), plain=True)


def _prepared(value: object) -> object:
    """The value with sorted names and bytes as base64."""
    match value:
        case bytes():
            return from_bytes(value, "base64")
        case list():
            return [_prepared(each) for each in value]
        case dict():
            named = {_key_text(key): _prepared(each) for key, each in value.items()}
            return {key: named[key] for key in sorted(named)}
    return value


def _key_text(key: object) -> str:
    if isinstance(key, str):
        return key
    text = document_text(key, plain=True)
    return text.strip('"')


def json_writer(type_: DataType) -> Callable[[object], str]:
    """A function that converts values of a type to JSON; times are strings."""
    prepare = _preparation(type_)
    return lambda value: document_text(prepare(value), plain=True)


def _preparation(type_: DataType) -> Callable[[object], object]:
    """A function that converts a value for JSON; null stays null."""
    match type_:
        case ArrayType(element=element):
            prepare = _array_preparation(_preparation(element))
        case MapType(key=key, value=value):
            prepare = _map_preparation(_preparation(key), _preparation(value))
        case StructType():
            prepare = _struct_preparation(type_)
        case _:
            prepare = _TIMES.get(type_, _prepared)
    return lambda value: None if value is None else prepare(value)


def _array_preparation(element: Callable[[object], object]) -> Callable[..., object]:
    def prepare(array: list[object]) -> list[object]:
        return [element(each) for each in array]

    return prepare


def _struct_preparation(type_: StructType) -> Callable[..., object]:
    named = {each.name: _preparation(each.type) for each in type_.fields}
    fields = [(name, named[name]) for name in sorted(named)]

    def prepare(struct: dict[str, object]) -> dict[str, object]:
        return {name: inner(struct.get(name)) for name, inner in fields}

    return prepare


def _map_preparation(
    key: Callable[[object], object], value: Callable[[object], object]
) -> Callable[..., object]:
    def prepare(entries: dict[object, object]) -> dict[str, object]:
        named = {_key_text(key(each)): value(inner) for each, inner in entries.items()}
        return {name: named[name] for name in sorted(named)}

    return prepare


_TIMES: dict[DataType, Callable[..., object]] = {
    TIME: time_text,
    DATE: date_text,
    TIMESTAMP: timestamp_text,
}
