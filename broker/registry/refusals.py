"""Errors of the registry with Confluent's messages and codes; clients compare both."""

from broker.errors import RegistryError
from broker.registry.subject_names import DEFAULT_CONTEXT, context_of


def subject_not_found(subject: str) -> RegistryError:
    """40401."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    """40402."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(named: int | str | None = None) -> RegistryError:
    """40403, by an id, by a GUID, or by its text."""
    return RegistryError(
        40403, "Schema not found" if named is None else f"Schema {named} not found"
    )


def subject_soft_deleted(subject: str) -> RegistryError:
    """40404."""
    return RegistryError(
        40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """40405."""
    return RegistryError(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """40406."""
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted."
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """40407."""
    return RegistryError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently "
        "deleted",
    )


def level_not_configured(subject: str) -> RegistryError:
    """40408."""
    return RegistryError(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def mode_not_configured(subject: str) -> RegistryError:
    """40409."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, messages: list[str]) -> RegistryError:
    """40901."""
    return RegistryError(
        40901,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(messages)}]',
    )


def invalid_schema(kind: str, details: str) -> RegistryError:
    """42201."""
    return RegistryError(42201, f"Invalid schema of type {kind}, details: {details}")


def empty_schema() -> RegistryError:
    """42201 for an empty schema."""
    return RegistryError(42201, "Empty schema")


def invalid_version(version: int | str) -> RegistryError:
    """42202."""
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def wrong_mode(subject: str | None, needed: str) -> RegistryError:
    """42205: the subject is in a mode that does not allow it."""
    context = context_of(subject)
    where = "" if context == DEFAULT_CONTEXT else f":{context}:"
    return RegistryError(42205, f"Subject {subject} in context {where} is {needed}")


def not_permitted(message: str) -> RegistryError:
    """42205 for another reason."""
    return RegistryError(42205, message)


def referenced(subject: str, version: int) -> RegistryError:
    """42206."""
    return RegistryError(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def too_large() -> RegistryError:
    """42209."""
    return RegistryError(42209, "Write failed because schema is too large")
