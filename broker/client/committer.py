"""Committer: commits the positions of a group, synchronously, asynchronously or automatically."""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import cast

from broker.client.api import CommitCallback, GroupMetadata, OffsetAndMetadata
from broker.client.cluster import Cluster
from broker.client.coordinator_link import CoordinatorLink
from broker.client.group_offsets import (
    VERSION_WITH_NAMES,
    commit_request,
    committed_codes,
    fetched_error,
    fetched_offsets,
    offset_fetch_request,
)
from broker.errors import BrokerError, ConnectionFailed, ErrorCode, MillstreamError, RequestTimeout
from broker.model import TopicPartition
from broker.protocol.messages.offsets import OffsetCommitResponse, OffsetFetchResponse

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

COORDINATOR_CODES = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
HINTS = {
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has rebalanced without this member; poll to join again",
    ErrorCode.ILLEGAL_GENERATION: "the group has rebalanced; poll to get the new assignment",
    ErrorCode.REBALANCE_IN_PROGRESS: "poll to take part in the rebalance, then commit again",
    ErrorCode.FENCED_INSTANCE_ID: "another member uses the same group_instance_id",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "shorten the metadata of the offsets",
}


@dataclass(slots=True)
class PendingCommit:
    """A commit that is not completed; the polling thread runs its callback."""

    offsets: Offsets
    callback: CommitCallback | None
    future: Future[object] | None = None


class Committer:
    """Commits for one group."""

    def __init__(
        self,
        cluster: Cluster,
        link: CoordinatorLink,
        group: Callable[[], GroupMetadata],
    ) -> None:
        """`group` is the current member and generation, or None without a group."""
        self._cluster = cluster
        self._link = link
        self._group = group
        self._pending: deque[PendingCommit] = deque()

    @property
    def is_idle(self) -> bool:
        return not self._pending

    def commit(self, offsets: Offsets, *, timeout_ms: int | None = None) -> None:
        """Commit and wait; retried while the coordinator moves, raises if it refuses."""
        if not offsets:
            return
        if self._pending:
            # Pending commits go first: the newest offsets must be committed last.
            self._cluster.coordinator("group", self._group().group_id, timeout_ms=timeout_ms)
            self.step()
        group = self._group()
        try:
            self._commit_as(group, offsets, timeout_ms)
        except BrokerError as error:
            # The broker may have moved the member to a new epoch while the commit was on its way.
            if error.code is not ErrorCode.STALE_MEMBER_EPOCH or self._group() == group:
                raise
            self._commit_as(self._group(), offsets, timeout_ms)

    def _commit_as(self, group: GroupMetadata, offsets: Offsets, timeout_ms: int | None) -> None:
        response = self._cluster.call_coordinator(
            ("group", group.group_id),
            commit_request(group, offsets),
            OffsetCommitResponse,
            _coordinator_error,
            timeout_ms=timeout_ms,
            version_max=VERSION_WITH_NAMES,
        )
        _check_committed(group.group_id, response)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Commit without waiting and without retries; a later poll runs the callback."""
        self._pending.append(PendingCommit(dict(offsets), callback))
        self.step()

    def step(self) -> int | None:
        """Send pending commits and report completed ones; None when nothing is pending."""
        while self._pending and self._report(self._pending[0]):
            self._pending.popleft()
        if not self._pending:
            return None
        unsent = [pending for pending in self._pending if pending.future is None]
        if unsent:
            wait_ms = self._link.step()
            if wait_ms is not None:
                return wait_ms
            for pending in unsent:
                request = commit_request(self._group(), pending.offsets)
                try:
                    pending.future = self._link.send(request, version_max=VERSION_WITH_NAMES)
                except ConnectionFailed:
                    # The heartbeat thread has just lost the coordinator: look it up again.
                    return self._link.retry_backoff_ms
        return self._cluster.config.request_timeout_ms

    def finish(self, timeout_ms: int) -> None:
        """Wait for pending commits until the timeout; those that were not sent fail."""
        deadline_ms = self._cluster.clock.monotonic_ms() + timeout_ms
        while self._pending:
            pending = self._pending.popleft()
            left_ms = max(0, deadline_ms - self._cluster.clock.monotonic_ms())
            if pending.future is not None:
                wait([pending.future], timeout=left_ms / 1000)
            if not self._report(pending) and pending.callback is not None:
                pending.callback(
                    pending.offsets,
                    RequestTimeout("the consumer was closed before the commit completed"),
                )

    def committed(
        self, partitions: set[TopicPartition] | None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of the group; waits for open transactions that may change them."""
        group_id = self._group().group_id

        def attempt(left_ms: int) -> dict[TopicPartition, OffsetAndMetadata]:
            response = self._cluster.call_coordinator(
                ("group", group_id),
                offset_fetch_request(GroupMetadata(group_id), partitions),
                OffsetFetchResponse,
                fetched_error,
                timeout_ms=left_ms,
                version_max=VERSION_WITH_NAMES,
            )
            return _committed(group_id, response)

        what = f'fetching the committed offsets of group "{group_id}"'
        return self._cluster.retry(what, attempt, timeout_ms=timeout_ms)

    def _report(self, pending: PendingCommit) -> bool:
        """Whether the commit is done; calls its callback then."""
        if pending.future is None or not pending.future.done():
            return False
        error: MillstreamError | None = None
        try:
            response = cast(OffsetCommitResponse, pending.future.result())
            if _coordinator_error(response) != ErrorCode.NONE:
                self._link.forget()
            _check_committed(self._group().group_id, response)
        except MillstreamError as failure:
            error = failure
        if pending.callback is not None:
            pending.callback(pending.offsets, error)
        return True


def _coordinator_error(response: OffsetCommitResponse) -> int:
    """The first error that concerns the coordinator and not a partition."""
    for code in committed_codes(response).values():
        if code in COORDINATOR_CODES:
            return code
    return ErrorCode.NONE


def _check_committed(group_id: str, response: OffsetCommitResponse) -> None:
    for tp, code in committed_codes(response).items():
        if code is not ErrorCode.NONE:
            reason = code.name.lower().replace("_", " ")
            raise BrokerError(
                code,
                f'cannot commit offsets of group "{group_id}": {reason}',
                at=str(tp),
                hint=HINTS.get(code, ""),
            )


def _committed(
    group_id: str, response: OffsetFetchResponse
) -> dict[TopicPartition, OffsetAndMetadata]:
    whole = fetched_error(response)
    if whole:
        code = ErrorCode(whole)
        raise BrokerError(code, f'cannot fetch the offsets of group "{group_id}"')
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, offset in fetched_offsets(response).items():
        if isinstance(offset, ErrorCode):
            raise BrokerError(offset, f'cannot fetch the offsets of group "{group_id}"', at=str(tp))
        if offset is not None:
            found[tp] = offset
    return found
