"""JsonSchema."""

from broker.schema.schema import ParsedSchema, Resolved


def parse_json_schema(text: str, resolved: Resolved) -> ParsedSchema:
    """The schema of a text."""
    raise NotImplementedError
