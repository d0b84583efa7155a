"""OffsetCommitter: commits the offsets that Spark's connector has read, so that tools show its lag.

It also deletes records of repartition topics that were read. Millstream's source does both itself.
The connector stores its position only in the checkpoint.
"""

import logging
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from broker.client import admin
from broker.client.api import OffsetAndMetadata
from broker.clock import Clock, SystemClock
from broker.errors import MillstreamError
from sql.backends.spark.offsets import of_text
from sql.backends.spark.purging import Purge

LOG = logging.getLogger(__name__)


class OffsetCommitter(StreamingQueryListener):  # type: ignore[misc]  # Any: PySpark has no types here
    """A listener for one query; the group has the query's name."""

    def __init__(
        self,
        servers: str,
        group_id: str,
        purged_topics: tuple[str, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        self._servers = servers
        self._group_id = group_id
        self._purge = Purge(purged_topics, clock or SystemClock())

    def onQueryStarted(self, event: Any) -> None:
        """Nothing was read yet."""

    def onQueryProgress(self, event: Any) -> None:
        """A batch is complete: commit its offsets."""
        if event.progress.name == self._group_id:
            for source in event.progress.sources:
                self._commit(source.endOffset)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing was read."""

    def onQueryTerminated(self, event: Any) -> None:
        """Do nothing: the offsets are committed already."""

    def _commit(self, place: str | None) -> None:
        """Commit; an error never fails the query."""
        if not place:
            return
        ends = of_text(place, "endOffset")
        offsets = {tp: OffsetAndMetadata(at) for tp, at in ends.items()}
        try:
            with admin(self._servers) as administration:
                administration.alter_group_offsets(self._group_id, offsets).all()
                self._purge.done(ends)
                self._purge.run_when_due(administration)
        except MillstreamError as error:
            LOG.warning("could not commit the offsets of group %s: %s", self._group_id, error)
