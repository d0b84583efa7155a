"""/contexts/{context}/...: any path, within a context.

    /contexts/.ctx/subjects/orders/versions   ->  /subjects/:.ctx:orders/versions
    /contexts/.ctx/config                     ->  /config/:.ctx:
    /contexts/.ctx/schemas/ids/7              ->  /schemas/ids/7?subject=:.ctx:
    /contexts/.ctx/subjects                   ->  /subjects?subjectPrefix=:.ctx:

A subject that already names a context is not changed. Paths stay encoded: subjects may contain
slashes.
"""

from collections.abc import Sequence
from urllib.parse import quote, unquote

from broker.errors import RegistryError
from broker.registry.subject_names import ALL_CONTEXTS, DEFAULT_CONTEXT
from broker.rest import Query

QUALIFIED = (":.", ALL_CONTEXTS)


def within_context(path: str, query: Query) -> tuple[str, Query]:
    """The equivalent path and query without a context prefix."""
    _, first, *rest = path.split("/") if path.startswith("/") else ("", "")
    if first != "contexts" or not rest:
        return path, query
    prefix = context_prefix(unquote(rest[0], errors="replace"))
    parts = rest[1:]
    return "/" + "/".join(_qualified_parts(parts, prefix)), _qualified_query(parts, query, prefix)


def context_prefix(context: str) -> str:
    """The prefix of the subjects of a context: "" or ":.context:"; 400 for an invalid context."""
    name = context[1:-1] if context.startswith(":") and context.endswith(":") else context
    if name in ("", DEFAULT_CONTEXT):
        return ""
    if ":" in name:
        raise RegistryError(400, f"Invalid context: {context}")
    return f":{name}:" if name.startswith(".") else f":.{name}:"


def _qualified_parts(parts: Sequence[str], prefix: str) -> list[str]:
    """The parts of the path, the subject with its context."""
    match parts:
        case ["subjects", subject, *others]:
            return ["subjects", _in_context(subject, prefix), *others]
        case ["compatibility", "subjects", subject, *others]:
            return ["compatibility", "subjects", _in_context(subject, prefix), *others]
        case ["config" | "mode" as name, subject]:
            return [name, _in_context(subject, prefix)]
        case ["config" | "mode" as name] if prefix:
            return [name, quote(prefix)]
        case _:
            return list(parts)


def _qualified_query(parts: Sequence[str], query: Query, prefix: str) -> Query:
    """The query, with the context where the path has no subject."""
    match parts:
        case ["schemas", "ids", *_]:
            name = "subject"
        case ["schemas"] | ["subjects"]:
            name = "subjectPrefix"
        case _:
            return query
    values = query.get(name) or ("",)
    return {**query, name: [_qualified(value, prefix) for value in values]}


def _in_context(encoded: str, prefix: str) -> str:
    return quote(_qualified(unquote(encoded, errors="replace"), prefix), safe="")


def _qualified(subject: str, prefix: str) -> str:
    return subject if subject.startswith(QUALIFIED) else prefix + subject
