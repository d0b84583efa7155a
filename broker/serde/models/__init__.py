"""Models as values: dataclasses, msgspec and pydantic classes, with schemas from type hints."""
