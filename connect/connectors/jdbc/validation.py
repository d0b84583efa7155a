"""Validation of configurations of the JDBC connectors."""

from collections.abc import Callable, Mapping, Sequence

from connect.config_def import ConfigDef, Settings
from connect.connectors.jdbc.connection_config import address_of
from connect.connectors.jdbc.dialects import load_dialect
from connect.errors import ConfigError

Complaints = Mapping[str, Sequence[str]]


def validated(
    definition: ConfigDef,
    config: Mapping[str, str],
    contradictions: Callable[[Settings], Complaints],
) -> Complaints | None:
    """Errors by setting; none if single values are invalid, which the definition reports."""
    try:
        settings = definition.parse(config)
        address = address_of(settings, config)
    except ConfigError:
        return None
    try:
        load_dialect(address.dialect)
    except ConfigError as error:
        return {"connection.url": [f"{error.message}: {error.hint}"]}
    return contradictions(settings)
