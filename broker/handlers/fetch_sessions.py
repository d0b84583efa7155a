"""Fetch sessions (KIP-227): a client sends its partitions once, then only changes.

A full fetch may open a session; the broker stores the partitions and responds to incremental
fetches with those that have changed. Epochs count the requests of a session, so that a lost request
is detected:

    session_id  epoch
    0           -1      full fetch, no session
    any          0      full fetch, opens a session (and closes the one named)
    id          -1      full fetch, closes the session
    id          n >= 1  incremental fetch, n as expected
"""

from dataclasses import dataclass, field
from random import Random

from broker.clock import Clock
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.fetch import FetchRequest, ForgottenTopic

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
SESSION_ID_MAX = 2**31 - 1
NO_SESSION_ID = 0
NO_TOPIC_ID = bytes(16)

TARGETS_MAX = 100_000  # partitions of a request or a session

# A session that was used within this time is only evicted for a larger one.
EVICTION_MS = 120_000

Key = tuple[str | bytes, int]


@dataclass(slots=True)
class FetchTarget:
    """One partition to fetch: what the client requested, and what was last sent to it."""

    topic_partition: TopicPartition
    topic_id: bytes
    fetch_offset: int
    bytes_max: int
    leader_epoch: int
    last_fetched_epoch: int
    known_high_watermark: int = -1
    known_start_offset: int = -1

    def update(self, asked: "FetchTarget") -> None:
        """Apply the values of a new request."""
        self.fetch_offset = asked.fetch_offset
        self.bytes_max = asked.bytes_max
        self.leader_epoch = asked.leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch


@dataclass(slots=True)
class FetchSession:
    """The partitions of one client, in the order in which they are served."""

    id: int
    by_topic_id: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    targets: dict[Key, FetchTarget] = field(default_factory=dict)

    def update(self, asked: dict[Key, FetchTarget], forgotten: list[ForgottenTopic]) -> None:
        """Add, change and remove partitions as requested."""
        for key, target in asked.items():
            known = self.targets.get(key)
            if known is None:
                self.targets[key] = target
            else:
                known.update(target)
        for topic in forgotten:
            name = topic.topic_id if self.by_topic_id else topic.topic
            for partition in topic.partitions:
                self.targets.pop((name, partition), None)

    def serve_last(self, served: list[FetchTarget]) -> None:
        """Move partitions that returned data to the end, so that the others come first."""
        if len(self.targets) == len(served):
            return
        for target in served:
            name, partition = target.topic_partition
            key = (target.topic_id if self.by_topic_id else name, partition)
            if (found := self.targets.pop(key, None)) is not None:
                self.targets[key] = found


@dataclass(slots=True)
class FetchPlan:
    """The partitions that one request reads, and its session."""

    targets: list[FetchTarget]
    session: FetchSession | None
    incremental: bool

    @property
    def session_id(self) -> int:
        """The session id of the response."""
        return NO_SESSION_ID if self.session is None else self.session.id


class FetchSessions:
    """The sessions of all clients; beyond the limit the least recently used is evicted."""

    def __init__(self, *, slots: int, clock: Clock, random: Random) -> None:
        self._slots = slots
        self._clock = clock
        self._random = random
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        """The number of open sessions."""
        return len(self._sessions)

    def plan(
        self,
        request: FetchRequest,
        *,
        by_topic_id: bool,
        targets: dict[Key, FetchTarget] | None = None,
    ) -> FetchPlan:
        """The partitions to read; BrokerError if the session is unknown or has another epoch.

        `targets` are the partitions of a large request, which were prepared.
        """
        epoch = request.session_epoch
        if targets is None:
            targets = requested_targets(request, by_topic_id=by_topic_id)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            session = None
            if epoch == INITIAL_EPOCH and targets:
                session = self._open(targets, by_topic_id=by_topic_id)
            return FetchPlan(list(targets.values()), session, incremental=False)
        session = self._continue(request.session_id, epoch, by_topic_id=by_topic_id)
        session.update(targets, request.forgotten_topics_data)
        if len(session.targets) > TARGETS_MAX:
            del self._sessions[session.id]
            raise too_many_targets()
        return FetchPlan(list(session.targets.values()), session, incremental=True)

    def _continue(self, session_id: int, epoch: int, *, by_topic_id: bool) -> FetchSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != by_topic_id:
            raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.used_ms = self._clock.monotonic_ms()
        # The order of the dictionary is the order of use: the first one is evicted first.
        del self._sessions[session_id]
        self._sessions[session_id] = session
        return session

    def _open(self, targets: dict[Key, FetchTarget], *, by_topic_id: bool) -> FetchSession | None:
        now_ms = self._clock.monotonic_ms()
        if not self._make_room(len(targets), now_ms):
            return None
        session_id = self._random.randint(1, SESSION_ID_MAX)
        while session_id in self._sessions:
            session_id = self._random.randint(1, SESSION_ID_MAX)
        session = FetchSession(session_id, by_topic_id, now_ms, now_ms, targets=targets)
        self._sessions[session_id] = session
        return session

    def _make_room(self, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > EVICTION_MS:
            del self._sessions[oldest.id]
            return True
        # A larger session saves more; one that was unused for a while is evicted for it.
        smallest = min(self._sessions.values(), key=lambda session: len(session.targets))
        if len(smallest.targets) < size and now_ms - smallest.created_ms > EVICTION_MS:
            del self._sessions[smallest.id]
            return True
        return False


def too_many_targets() -> BrokerError:
    """The error for a fetch that would keep the broker busy for too long."""
    return BrokerError(
        ErrorCode.INVALID_REQUEST, f"a fetch can have {TARGETS_MAX} partitions at most"
    )


def requested_targets(request: FetchRequest, *, by_topic_id: bool) -> dict[Key, FetchTarget]:
    """The partitions of a request, each once; the last entry of a duplicate counts."""
    targets: dict[Key, FetchTarget] = {}
    for topic in request.topics:
        name = topic.topic_id if by_topic_id else topic.topic
        for asked in topic.partitions:
            targets[name, asked.partition] = FetchTarget(
                TopicPartition(topic.topic, asked.partition),
                topic.topic_id,
                asked.fetch_offset,
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
            )
    return targets
