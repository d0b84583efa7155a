"""Messages of the server; the conversion of entities to JSON is shared with the shell."""

from sql.engine.messages import TAGS, entity_json, plain_json

__all__ = ["TAGS", "entity_json", "plain_json"]
