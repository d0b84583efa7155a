"""CREATE CONNECTOR without secrets: the values of its settings are masked, as in ksqlDB.

    CREATE SINK CONNECTOR c WITH ('connector.class'='JdbcSink', 'connection.password'='[string]');

The text may be invalid SQL: errors also contain the statement.
"""

import re

_CREATE = re.compile(r"\bCREATE\s+(?:SOURCE|SINK)\s+CONNECTOR\b", re.IGNORECASE)
# Linear time: a quoted name ends at the next quote, and a plain one starts at the first chance.
_SETTING = re.compile(
    r"""((?:'[^']*'|"[^"]*"|`[^`]*`|(?<![\w.])[\w.]+)\s*=\s*)('(?:[^']|'')*'?|[^\s,);]+)"""
)
_SECRET = re.compile(r"(?i)passw|secret|token|credential|user\.info|jaas|key['\"`]?\s*=")
_SHOWN = frozenset({"connector.class"})
MASK = "'[string]'"


def masked(text: str) -> str:
    """The SQL with '[string]' for the values of a connector's settings, except its class."""
    found = _CREATE.search(text) if "onnector" in text or "ONNECTOR" in text else None
    if found is None:
        return text
    return text[: found.end()] + _SETTING.sub(_mask, text[found.end() :])


def hidden_values(text: str) -> list[str]:
    """The passwords among the values that `masked` hides, longest first."""
    found = _CREATE.search(text)
    if found is None:
        return []
    pairs = _SETTING.findall(text[found.end() :])
    values = {value.strip("'") for name, value in pairs if _SECRET.search(name)}
    return sorted((value for value in values if len(value) > 3), key=len, reverse=True)


def _mask(setting: re.Match[str]) -> str:
    return setting[0] if _is_shown(setting[1]) else f"{setting[1]}{MASK}"


def _is_shown(name: str) -> bool:
    return name.rstrip(" \t\r\n=").strip("'\"`").lower() in _SHOWN
