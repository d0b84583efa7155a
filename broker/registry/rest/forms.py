"""The `format` parameter: the text of a schema in another form."""

from broker.errors import RegistryError
from broker.registry.registry import Registry
from broker.registry.values import StoredSchema


def text_in(registry: Registry, stored: StoredSchema, form: str) -> str:
    """A schema's text in a form: "resolved", "serialized"; none is the text as registered."""
    if not form:
        return stored.schema.text
    try:
        return registry.parsed(stored).formatted(form)
    except ValueError as error:
        kind = stored.schema.kind.value
        raise RegistryError(422, f"Unsupported format '{form}' for type {kind}") from error
