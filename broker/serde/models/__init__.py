"""Models as values: dataclasses, msgspec and pydantic classes, with schemas of their hints."""
