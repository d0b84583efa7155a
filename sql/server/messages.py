"""Messages of the server: entities as JSON come from the engine, which the shell shares."""

from sql.engine.messages import TAGS, entity_json, plain_json

__all__ = ["TAGS", "entity_json", "plain_json"]
