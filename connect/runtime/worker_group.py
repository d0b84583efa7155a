"""WorkerGroup: one worker per group.id runs everything; a second one is refused.

Workers do not share connectors yet (see herder/assignment.py): two that ran at once would write
every record twice. A worker is a member of the group `group.id`, of protocol type "connect". The
leader of the group names the one member that runs connectors, its owner:

    metadata    {"worker": "host:8083", "owner": true}    whether the member is the owner
    assignment  {"owner": "host:8083"}

    join ──► named owner ──► runs ── still named after a rebalance ──► continues
      │                       └──── another is named, or fenced ─────► on_lost: stop everything
      └────► another is named ──► ConnectError, leaves

When the owner has left, or its session has timed out (kill -9), the next worker is the owner. A
worker that restarts at the same address is the same static member and rejoins immediately, without
waiting for the session to end. Workers of Apache Kafka use other protocols, so the coordinator
refuses to have both in one group.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from broker import concurrency
from broker.client.api import GroupMetadata, JoinedMember
from broker.client.opening import Target, admin, group_member
from broker.errors import BrokerError, ErrorCode, MillstreamError
from connect.errors import ConnectError

logger = logging.getLogger(__name__)

PROTOCOL_TYPE = "connect"
PROTOCOL = "millstream-one-worker"
POLL_MS = 500
JOIN_MARGIN_MS = 10_000
LEAVE_TIMEOUT_MS = 2_000
NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9._-]")


@dataclass(frozen=True, slots=True)
class GroupTimeouts:
    """The settings of the same names in Kafka Connect."""

    session_ms: int = 10_000
    heartbeat_ms: int = 3_000
    rebalance_ms: int = 60_000


@dataclass(slots=True)
class SingleOwnerProtocol:
    """The GroupProtocol that names the owner of the group. Only the polling thread calls it."""

    worker: str
    owns: bool = False
    owner: str | None = None  # as the last assignment says
    protocol_type: str = field(default=PROTOCOL_TYPE, init=False)

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """One protocol; its metadata has whether this worker is the owner."""
        return [(PROTOCOL, orjson.dumps({"worker": self.worker, "owner": self.owns}))]

    def prepare_join(self, *, lost: bool) -> None:
        """After a lost membership, this worker owns nothing: another may have taken over."""
        self.owner = None
        if lost:
            self.owns = False

    def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """The owner stays the owner; without one, it is the leader."""
        del protocol
        claims = [orjson.loads(member.metadata) for member in members]
        owners = [claim["worker"] for claim in claims if claim["owner"]]
        owner = self.worker if self.owns or not owners else owners[0]
        return {member.member_id: orjson.dumps({"owner": owner}) for member in members}

    def on_assignment(self, protocol: str, assignment: bytes, metadata: GroupMetadata) -> None:
        """Store the owner."""
        del protocol, metadata
        self.owner = str(orjson.loads(assignment)["owner"])
        self.owns = self.owner == self.worker

    def wants_rejoin(self) -> str:
        """Never: only members that join or leave change the owner."""
        return ""


class WorkerGroup:
    """The group membership of one worker. One thread calls `join` and `close`."""

    def __init__(
        self,
        target: Target,
        group_id: str,
        options: Mapping[str, object],
        on_lost: Callable[[ConnectError], None],
        timeouts: GroupTimeouts | None = None,
    ) -> None:
        """`on_lost` is called once, in another thread, when another worker becomes the owner."""
        self._target = target
        self._group_id = group_id
        self._options = options
        self._on_lost = on_lost
        self._timeouts = timeouts or GroupTimeouts()
        self._stop = concurrency.Event()
        self._thread: concurrency.Thread | None = None

    def join(self, worker: str) -> None:
        """Become the owner; ConnectError if another worker is. Waits for a dead owner's timeout."""
        timeouts = self._timeouts
        self._protocol = SingleOwnerProtocol(worker)
        self._member = group_member(
            self._target,
            self._protocol,
            group_id=self._group_id,
            group_instance_id=NOT_IN_NAMES.sub("_", worker),
            session_timeout_ms=timeouts.session_ms,
            heartbeat_interval_ms=timeouts.heartbeat_ms,
            max_poll_interval_ms=timeouts.rebalance_ms,
            **self._options,
        )
        try:
            self._take_part_once()
        except BaseException:
            self._leave()
            raise
        self._thread = concurrency.Thread(target=self._take_part, name="connect-group", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the group, so that the next worker need not wait."""
        if self._thread is None:
            return
        self._stop.set()
        self._thread.join()
        self._thread = None
        self._leave()

    def _take_part_once(self) -> None:
        waiting_ms = self._timeouts.rebalance_ms + JOIN_MARGIN_MS
        try:
            stable = self._member.poll(waiting_ms)
        except BrokerError as error:
            raise self._refusal(error) from error
        if not stable:
            raise ConnectError(
                f'cannot join group "{self._group_id}" in {waiting_ms} ms',
                hint="check whether the brokers are running and reachable",
            )
        self._check_owner()

    def _check_owner(self) -> None:
        owner = self._protocol.owner
        if owner is not None and not self._protocol.owns:
            raise ConnectError(
                f'another worker runs the connectors of group "{self._group_id}": {owner}',
                hint="several workers cannot share a group yet: stop the other one, or use "
                "another group.id and other topics for this one",
            )

    def _refusal(self, error: BrokerError) -> ConnectError:
        if error.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return ConnectError(
                f'group "{self._group_id}" has members that are not Millstream workers',
                hint="stop them (workers of Apache Kafka, for example), or set another group.id",
            )
        if error.code is ErrorCode.FENCED_INSTANCE_ID:
            return ConnectError(
                f'another worker with the id "{self._protocol.worker}" has joined group '
                f'"{self._group_id}"',
                hint="this worker has stopped; each worker must have a different host name or port",
            )
        return ConnectError(error.message, at=f'group "{self._group_id}"', hint=error.hint)

    def _take_part(self) -> None:
        """Stay in the group until `close`; if the membership ends earlier, stop the worker."""
        try:
            while not self._stop.wait(0):
                if self._member.poll(POLL_MS):
                    self._check_owner()
                    self._stop.wait(POLL_MS / 1000)
        except BrokerError as error:
            self._lost(self._refusal(error))
        except ConnectError as error:
            self._lost(error)
        except Exception as error:
            logger.exception("the membership in group %s ended", self._group_id)
            self._lost(ConnectError(f'the membership in group "{self._group_id}" ended: {error}'))

    def _lost(self, error: ConnectError) -> None:
        logger.error("this worker stops all its connectors: %s", error)
        self._on_lost(error)

    def _leave(self) -> None:
        member_id = self._member.metadata.member_id
        self._member.close(timeout_ms=LEAVE_TIMEOUT_MS)
        if not member_id:
            return
        # A static member stays until its session ends, unless an admin removes it.
        try:
            with admin(self._target, **self._options) as administration:
                administration.remove_group_members(
                    self._group_id, [member_id], timeout_ms=LEAVE_TIMEOUT_MS
                )
        except MillstreamError as error:
            logger.warning("cannot leave group %s: %s", self._group_id, error)
