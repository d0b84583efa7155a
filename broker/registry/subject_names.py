"""Names of subjects: "subject" in the default context, ":.context:subject" in another.

":.context:" alone names the context itself, ":*:" all contexts, and ":.__GLOBAL:" holds the default
configuration and mode.
"""

from typing import NamedTuple
from unicodedata import category

from broker.errors import RegistryError

DEFAULT_CONTEXT = "."
ALL_CONTEXTS = ":*:"
GLOBAL_SETTINGS = ":.__GLOBAL:"
RESERVED = frozenset({"__GLOBAL", "__EMPTY"})


class SubjectName(NamedTuple):
    """A subject's name in parts; the context starts with a dot."""

    context: str
    name: str

    def __str__(self) -> str:
        """The whole name."""
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"


def split_subject(subject: str) -> SubjectName:
    """The parts of a whole name; a name without a context prefix is a plain name."""
    if not subject.startswith(":."):
        return SubjectName(DEFAULT_CONTEXT, subject)
    context, _, name = subject[1:].partition(":")
    return SubjectName(context, name)


def context_of(subject: str | None) -> str:
    """The context of a subject; no subject means the default context."""
    if subject is None or not subject.startswith(":."):
        return DEFAULT_CONTEXT
    return split_subject(subject).context


def settings_key(subject: str) -> str | None:
    """The key of the settings of a subject's context."""
    context = split_subject(subject).context
    return None if context == DEFAULT_CONTEXT else f":{context}:"


def whole_name(subject: str) -> str:
    """The normalized name of a subject: the default context is omitted."""
    return str(split_subject(subject)) if subject.startswith(":.") else subject


def in_context_of(parent: str, subject: str) -> str:
    """The subject of a reference: in the referring context unless it names another one."""
    named = split_subject(subject)
    if named.context != DEFAULT_CONTEXT:
        return str(named)
    return str(SubjectName(context_of(parent), named.name))


def checked_subject(subject: str, *, settings: bool = False) -> str:
    """A subject's normalized name, if it is valid (42208); settings may be global."""
    name = whole_name(subject)
    parts = split_subject(name)
    if (
        any(category(sign) in ("Cc", "Cs") for sign in name)
        or parts.name in RESERVED
        or (f":{parts.context}:" == GLOBAL_SETTINGS and not settings)
    ):
        raise RegistryError(42208, f"The specified subject '{subject}' is not a valid subject.")
    return name


def covers(place: str | None, subject: str) -> bool:
    """Whether the scope of a setting is this subject, its context, or global (None)."""
    if place is None or place in (subject, GLOBAL_SETTINGS):
        return True
    named = split_subject(place)
    return not named.name and named.context == split_subject(subject).context


def matches_prefix(subject: str, prefix: str) -> bool:
    """Whether a subject has a prefix; a plain prefix only matches the default context."""
    if prefix.startswith(ALL_CONTEXTS):
        return split_subject(subject).name.startswith(prefix[len(ALL_CONTEXTS) :])
    if prefix.startswith(":."):
        return subject.startswith(prefix)
    return not subject.startswith(":.") and subject.startswith(prefix)
