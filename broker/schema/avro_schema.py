"""AvroSchema."""

from broker.schema.schema import ParsedSchema, Resolved


def parse_avro(text: str, resolved: Resolved) -> ParsedSchema:
    """The schema of a text."""
    raise NotImplementedError
