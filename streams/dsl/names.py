"""Names of nodes, stores and internal topics: those of Kafka Streams, by the order of calls.

One counter is used for all. An operation uses its numbers even if the user names it, so that naming
one operation does not rename others. Names are stored state: running applications lose their state
if a name changes.
"""

import re

from streams.errors import TopologyError
from streams.where import user_line

LENGTH_MAX = 249
REPARTITION_SUFFIX = "-repartition"
STATE_STORE = "STATE-STORE-"

SOURCE = "KSTREAM-SOURCE-"
SINK = "KSTREAM-SINK-"
FILTER = "KSTREAM-FILTER-"
MAP = "KSTREAM-MAP-"
MAP_VALUES = "KSTREAM-MAPVALUES-"
FLAT_MAP = "KSTREAM-FLATMAP-"
FLAT_MAP_VALUES = "KSTREAM-FLATMAPVALUES-"
SELECT_KEY = "KSTREAM-KEY-SELECT-"
PEEK = "KSTREAM-PEEK-"
FOREACH = "KSTREAM-FOREACH-"
PRINT = "KSTREAM-PRINTER-"
BRANCH = "KSTREAM-BRANCH-"
MERGE = "KSTREAM-MERGE-"
REPARTITION = "KSTREAM-REPARTITION-"
TO_TABLE = "KSTREAM-TOTABLE-"
PROCESSOR = "KSTREAM-PROCESSOR-"
PROCESS_VALUES = "KSTREAM-PROCESSVALUES-"
TABLE_SOURCE = "KTABLE-SOURCE-"
TABLE_FILTER = "KTABLE-FILTER-"
TABLE_MAP_VALUES = "KTABLE-MAPVALUES-"
TABLE_TRANSFORM_VALUES = "KTABLE-TRANSFORMVALUES-"
TABLE_TO_STREAM = "KTABLE-TOSTREAM-"
TABLE_SELECT = "KTABLE-SELECT-"

_GENERATED = re.compile("KSTREAM.*-[0-9]{10}")
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_name(name: str, kind: str = "name") -> str:
    """Check that a name can be part of a topic name."""
    if not isinstance(name, str) or not _LEGAL.fullmatch(name) or name in (".", ".."):
        raise TopologyError(
            f'{kind} "{name}" is not allowed',
            at=user_line(),
            hint='use letters, digits, ".", "_" and "-", and not "." or ".." alone',
        )
    if len(name) > LENGTH_MAX:
        raise TopologyError(
            f'{kind} "{name[:40]}..." has {len(name)} characters',
            at=user_line(),
            hint=f"at most {LENGTH_MAX} are allowed",
        )
    return name


def is_generated(name: str) -> bool:
    """Whether a name was generated; then the nodes of its topic have generated names, too."""
    return _GENERATED.fullmatch(name) is not None


class Names:
    """Generates the names of one builder."""

    def __init__(self) -> None:
        self._next = 0

    def new(self, prefix: str) -> str:
        """The next name with a prefix."""
        number = self._next
        self._next = number + 1
        return f"{prefix}{number:010d}"

    def new_store(self, prefix: str) -> str:
        """The next name of a store without a name from the user."""
        return self.new(prefix + STATE_STORE)

    def node(self, name: str | None, prefix: str, *, suffix: str = "") -> str:
        """The user's name with a suffix, or a generated one; a number is used in both cases."""
        generated = self.new(prefix)
        return generated if name is None else check_name(name + suffix)
