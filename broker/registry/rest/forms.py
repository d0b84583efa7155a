"""The `format` parameter: the schema text in another format."""

from broker.errors import RegistryError
from broker.registry.registry import Registry
from broker.registry.values import StoredSchema


def text_in(registry: Registry, stored: StoredSchema, form: str) -> str:
    """A schema's text in a format: "resolved", "serialized"; none is the registered text."""
    if not form:
        return stored.schema.text
    try:
        return registry.parsed(stored).formatted(form)
    except ValueError as error:
        kind = stored.schema.kind.value
        raise RegistryError(422, f"Unsupported format '{form}' for type {kind}") from error
