"""Filter: drops records."""

from connect.api import Transformation
from connect.records import Record


class Filter(Transformation):
    """Drops every record or, with a predicate, those that match."""

    def apply(self, record: Record) -> None:
        """None: the record is dropped."""
        return
