"""JSON text of schemas: parsed within limits, printed without spaces."""

import orjson

from broker.errors import SchemaError

TEXT_MAX = 10 * 1024 * 1024
DEPTH_MAX = 200


def read_json(text: str) -> object:
    """Parse a schema's JSON text; SchemaError if it is invalid, too long or nested too deeply."""
    if len(text) > TEXT_MAX:
        raise SchemaError(f"the text has {len(text)} characters, more than {TEXT_MAX}")
    try:
        found: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise SchemaError(f"the text is not JSON: {error}") from error
    check_depth(found)
    return found


def write_json(value: object, *, sort: bool = False) -> str:
    """Compact JSON text, optionally sorted by key."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort else None).decode()
    except orjson.JSONEncodeError as error:  # only if it is composed of several schemas
        raise SchemaError(f"the schema cannot be written as JSON: {error}") from error


def check_depth(value: object) -> None:
    """Refuse values that are nested too deeply to be processed recursively."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            return
    raise SchemaError(f"the text is nested deeper than {DEPTH_MAX} levels")


def _inner(value: object) -> list[object]:
    if type(value) is dict:
        return list(value.values())
    return value if type(value) is list else []
