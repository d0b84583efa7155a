"""Filter: records that do not go on."""

from connect.api import Transformation
from connect.records import Record


class Filter(Transformation):
    """Drops every record; with a predicate, those that it chooses."""

    def apply(self, record: Record) -> None:
        """Nothing."""
        return
