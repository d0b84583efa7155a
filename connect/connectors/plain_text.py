"""Values as Kafka's connectors print them: as Java shows them, not as Python does."""

from broker.schema.java_numbers import double_text
from connect.data import Struct


def plain_text(value: object) -> str:
    """A value as one text; a text is itself."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case bytes() | bytearray() | memoryview():
            # Java would print the address of the array, which helps nobody.
            return bytes(value).decode("utf-8", "replace")
        case Struct():
            pairs = zip(value.schema.fields, value.values, strict=True)
            shown = (f"{field.name}={plain_text(one)}" for field, one in pairs if one is not None)
            return f"Struct{{{','.join(shown)}}}"
        case dict():
            entries = (f"{plain_text(key)}={plain_text(one)}" for key, one in value.items())
            return f"{{{', '.join(entries)}}}"
        case list():
            return f"[{', '.join(map(plain_text, value))}]"
        case _:
            return str(value)
