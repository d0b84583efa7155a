"""LogEnds: the partitions of a cluster's topics, and the start and end offsets of their logs."""

import logging
from collections.abc import Iterable, Mapping

from broker.client.api import OffsetAndMetadata
from broker.client.consumer_config import ConsumerConfig
from broker.client.opening import admin, consumer
from broker.clock import Clock, SystemClock
from broker.errors import ConfigError, ErrorCode, MillstreamError
from broker.linear_patterns import compile_pattern
from broker.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from sql.backends.spark.offsets import Offsets
from sql.backends.spark.options import EARLIEST, SourceOptions, Where, of_admin
from sql.backends.spark.purging import Purge

LOG = logging.getLogger(__name__)
SHOWN_MAX = 10


class DataLost(MillstreamError):
    """Offsets that a query still had to read were deleted."""


def lost(options: SourceOptions, gone: Mapping[TopicPartition, str]) -> None:
    """Raise DataLost, or log a warning if the query continues without the records."""
    if not gone:
        return
    shown = "; ".join(f"{tp}: {what}" for tp, what in sorted(gone.items())[:SHOWN_MAX])
    more = f" and {len(gone) - SHOWN_MAX} more" if len(gone) > SHOWN_MAX else ""
    message = f"records were deleted before they were read: {shown}{more}"
    if options.fail_on_data_loss:
        raise DataLost(
            message,
            hint='keep records longer (retention.ms), or set "fail_on_data_loss" to false to '
            "continue with the remaining records, or start over with a new checkpoint",
        )
    LOG.warning("%s; continuing with the remaining records", message)


class LogEnds:
    """Requests to one cluster; opened once in the driver."""

    def __init__(self, options: SourceOptions, clock: Clock | None = None) -> None:
        """Open the clients; nothing is sent yet."""
        self._options = options
        self._purge = Purge(options.purged_topics, clock or SystemClock())
        pattern = options.topic_pattern
        self._pattern = None if pattern is None else compile_pattern(pattern)
        settings = dict(options.client)
        group = {} if options.group_id is None else {"group_id": options.group_id}
        self._consumer = consumer(
            options.servers,
            isolation_level=options.isolation_level,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            auto_offset_reset="none",
            **group,
            **settings,
        )
        self._admin = admin(options.servers, **of_admin(settings, ConsumerConfig))

    # --- partitions and offsets ---------------------------------------------------------------

    def partitions(self) -> set[TopicPartition]:
        """All current partitions of the topics that are read."""
        if self._pattern is not None:
            names = [name for name in self._admin.list_topics() if self._pattern.fullmatch(name)]
        else:
            names = list(self._options.topics)
        described = self._admin.describe_topics(names)
        result = set()
        for name in names:
            error = described.errors.get(name)
            if error is not None and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise error
            if error is None:
                result |= {TopicPartition(name, number) for number in described[name].partitions}
        return result

    def existing(self) -> set[TopicPartition]:
        """Like `partitions`; but named topics must exist."""
        result = self.partitions()
        missing = set(self._options.topics) - {tp.topic for tp in result}
        if missing:
            names = ", ".join(f'"{name}"' for name in sorted(missing))
            raise ConfigError(
                f"topics do not exist: {names}", hint='create them first, or correct "topics"'
            )
        return result

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The start offsets."""
        return self._consumer.beginning_offsets(partitions)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end offsets, as far as records may be read."""
        return self._consumer.end_offsets(partitions)

    # --- positions in options -----------------------------------------------------------------

    def resolve(self, where: Where, otherwise: str) -> dict[TopicPartition, int]:
        """The offsets of all partitions at a position; `otherwise` is for the others."""
        partitions = self.existing()
        if isinstance(where, int):
            return self._at_time(partitions, where)
        if isinstance(where, str):
            return self.earliest(partitions) if where == EARLIEST else self.latest(partitions)
        return self._at_offsets(partitions, where, otherwise)

    def _at_time(self, partitions: set[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        found = self._consumer.offsets_for_times(dict.fromkeys(partitions, time_ms))
        younger = {tp: place.offset for tp, place in found.items() if place is not None}
        ends = self.latest(partitions)
        # A younger record may not be committed yet: then the end of the readable records is used.
        return {tp: min(younger.get(tp, end), end) for tp, end in ends.items()}

    def _at_offsets(
        self, partitions: set[TopicPartition], where: Offsets, otherwise: str
    ) -> dict[TopicPartition, int]:
        unknown = set(where) - partitions
        if unknown:
            names = ", ".join(str(tp) for tp in sorted(unknown))
            raise ConfigError(
                f"offsets are given for partitions that are not read: {names}",
                hint='compare "topics" with the offsets',
            )
        first, last = self.earliest(partitions), self.latest(partitions)
        marks = {EARLIEST_TIMESTAMP: first, LATEST_TIMESTAMP: last}
        left_out = EARLIEST_TIMESTAMP if otherwise == EARLIEST else LATEST_TIMESTAMP
        chosen = {tp: where.get(tp, left_out) for tp in partitions}
        return {tp: marks[at][tp] if at < 0 else at for tp, at in chosen.items()}

    # --- deleted records ----------------------------------------------------------------------

    def check(self, start: Offsets, end: Offsets) -> dict[TopicPartition, int]:
        """The offsets to start from, for partitions of `end`: `start`, or what is left after it.

        Partitions that are not in `start` are new, and read from their beginning.
        """
        present = self.partitions()
        first = self.earliest([tp for tp in end if tp in present])
        gone = {
            tp: f"offsets {at} to {end[tp] - 1}: the partition was deleted"
            for tp, at in start.items()
            if tp in end and tp not in present and at < end[tp]
        }
        begin = {}
        for tp, beginning in first.items():
            at = start.get(tp, beginning)
            if at < beginning and at < end[tp]:
                gone[tp] = f"offsets {at} to {min(beginning, end[tp]) - 1}"
            begin[tp] = max(at, beginning)
        lost(self._options, gone)
        return begin

    def ends_after(self, start: Offsets) -> dict[TopicPartition, int]:
        """The current end offsets; logs that end before what was read are reported."""
        last = self.latest(self.partitions())
        gone = {
            tp: f"the log ends at {last[tp]}, but {at} was already read"
            for tp, at in start.items()
            if tp in last and last[tp] < at
        }
        gone |= {tp: "the partition does not exist" for tp in start if tp not in last}
        lost(self._options, gone)
        return last

    # --- consumer group -----------------------------------------------------------------------

    def commit(self, offsets: Offsets) -> None:
        """Commit for the group of the options, so that tools show its lag; never fails a query."""
        if not offsets:
            return
        if self._options.group_id is not None:
            self._commit(offsets)
        self._purge.done(offsets)
        self._purge.run_when_due(self._admin)

    def _commit(self, offsets: Offsets) -> None:
        try:
            self._consumer.commit({tp: OffsetAndMetadata(at) for tp, at in offsets.items()})
        except MillstreamError as error:
            LOG.warning(
                "could not commit the offsets of group %s: %s", self._options.group_id, error
            )

    def close(self) -> None:
        """Close the clients."""
        self._consumer.close()
        self._admin.close()
