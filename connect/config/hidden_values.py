"""Hides passwords in responses, statuses and logs, by their names and forms.

Definitions declare passwords (ConfigType.PASSWORD). Settings without a definition, such as those of
clients, are passwords by their names. In all other strings, the passwords in URLs and authorization
headers are hidden. A reference (`${file:...}`) is not secret and is shown unchanged.
"""

import re
from collections.abc import Iterable

HIDDEN = "[hidden]"
# Shorter ones occur in strings by chance.
SECRET_CHARACTERS_MIN = 4
_NAME = re.compile(
    r"(?i)(?:^|[._-])(?:password|passwd|passphrase|pwd|secret|token|credentials?|apikey|"
    r"jaas[._-]config|user[._-]info|(?:access|api|private|keystore|secret)[._-]key)$"
)
_REFERENCES = re.compile(r"(?:\$\{[^}]*\})+")
_URL = re.compile(r"(?<=://)([^/?#\s:@]*):([^/?#\s]+)@")
_PARAMETER = re.compile(r"(?i)([?&;](?:password|passwd|pwd|sslpassword)=)[^&;#\s]+")
_HEADER = re.compile(r"(?i)\b((?:proxy-)?authorization|x-api-key|api-key|cookie)\s*:\s*[^|\r\n]+")


def is_secret_name(name: str) -> bool:
    """Whether an undefined setting is a password, by its name."""
    return _NAME.search(name) is not None


def is_reference(text: str) -> bool:
    """Whether a value is a reference to a config provider."""
    return _REFERENCES.fullmatch(text.strip()) is not None


def hide_in_text(text: str, secrets: Iterable[str] = ()) -> str:
    """A string without these secrets, and without passwords of URLs and headers."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    if ":" not in text:
        return text
    text = _URL.sub(rf"\1:{HIDDEN}@", text)
    return _HEADER.sub(rf"\1: {HIDDEN}", _PARAMETER.sub(rf"\1{HIDDEN}", text))


def hide_value(name: str, text: str, *, password: bool) -> str:
    """The value of a setting, hidden if it is a password."""
    if not text or is_reference(text):
        return text
    return HIDDEN if password else hide_in_text(text)


def secrets_in(text: str) -> list[str]:
    """The passwords within a value that is not a password itself."""
    return [found[2] for found in _URL.finditer(text)]
