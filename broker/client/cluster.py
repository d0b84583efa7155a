"""Cluster: the current metadata of a cluster, and blocking calls that survive its changes.

Metadata is requested when it is missing, when a response shows that it is stale, and when it is
older than metadata_max_age_ms; one request at a time serves all callers. Any thread may call any
method; methods that never wait say so.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from random import Random
from typing import Literal, TypeVar, cast

from broker import concurrency
from broker.client.answers import check, code_of
from broker.client.config import ClusterConfig
from broker.client.metadata import NO_LEADER, PartitionInfo, TopicInfo, read_brokers, read_topic
from broker.client.retry import Backoff, Retrier
from broker.client.shared_threads import ClientThreads
from broker.client.transport import Node, Transport
from broker.clock import Clock, SystemClock
from broker.errors import (
    RETRIABLE,
    BrokerError,
    BrokersUnreachable,
    ClientError,
    ConnectionFailed,
    ErrorCode,
    MillstreamError,
    RequestTimeout,
)
from broker.model import TopicPartition
from broker.protocol.messages.metadata import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

T = TypeVar("T")

CoordinatorKind = Literal["group", "transaction"]
KEY_TYPES: dict[CoordinatorKind, int] = {"group": 0, "transaction": 1}
# The broker is no longer, or not yet, the coordinator: look it up again.
COORDINATOR_LOST = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
# A transport answers or fails every request by itself; this only catches a transport that does not.
GRACE_MS = 5_000
ATTEMPT_MS_MIN = 500  # for a call when the time for finding a first broker is over


class Cluster:
    """The cluster as one client sees it."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock | None = None,
        config: ClusterConfig | None = None,
        *,
        random: Random | None = None,
        threads: ClientThreads | None = None,
    ) -> None:
        """The transport is closed with the cluster.

        `threads` are those that clients share; without them each has its own.
        """
        self.transport = transport
        self.clock = clock or SystemClock()
        self.config = config or ClusterConfig()
        self.random = random or Random()
        self.threads = threads
        self.backoff = Backoff(
            self.config.retry_backoff_ms, self.config.retry_backoff_max_ms, self.random
        )
        self._retrier = Retrier(self.clock, self.backoff)
        self._lock = concurrency.Lock()
        self._topics: dict[str, TopicInfo] = {}
        self._followed: set[str] = set()
        self._refreshed_ms: int | None = None  # None: stale
        self._asked_ms = 0
        self._failures = 0
        self._not_connected = ""  # why the last attempt to connect failed
        self._refreshing: Future[object] | None = None
        self._coordinators: dict[tuple[CoordinatorKind, str], int] = {}
        self._listeners: list[Callable[[], None]] = []
        self._closed = False
        self._reached = False  # whether any broker has answered yet
        self._looking_since_ms: int | None = None  # when the first call that needed one began
        self.cluster_id: str | None = None
        self.controller_id = -1

    # --- requests -----------------------------------------------------------------------------

    def submit(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
    ) -> Future[object]:
        """Send one request, once; never waits."""
        return self.transport.send(
            node_id,
            request,
            timeout_ms=timeout_ms or self.config.request_timeout_ms,
            version_max=version_max,
        )

    def ask(
        self,
        node_id: int | None,
        request: object,
        response: type[T],
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
    ) -> T:
        """Send one request, once, and wait for its response of the given class."""
        limit_ms = timeout_ms or self.config.request_timeout_ms
        future = self.submit(node_id, request, timeout_ms=limit_ms, version_max=version_max)
        return cast(T, self._result(future, limit_ms, type(request).__name__))

    def call(
        self,
        node_id: int | None,
        request: object,
        response: type[T],
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
    ) -> T:
        """Send a request and wait; retried while connections fail and time is left."""

        def attempt(left_ms: int) -> T:
            if node_id is not None and all(node.id != node_id for node in self.transport.nodes()):
                self._refresh_once(left_ms)
            limit_ms = min(left_ms, self.config.request_timeout_ms)
            return self.ask(
                node_id, request, response, timeout_ms=limit_ms, version_max=version_max
            )

        return self.retry(_describe(request, node_id), attempt, timeout_ms=timeout_ms)

    def call_coordinator(
        self,
        coordinator: tuple[CoordinatorKind, str],
        request: object,
        response: type[T],
        error_of: Callable[[T], int],
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
    ) -> T:
        """Send a request to the coordinator of a group or transactional id, even if it moves.

        Responses with a retriable `error_of` are retried while time is left; all others are
        returned, with or without an error.
        """

        def attempt(left_ms: int) -> T:
            return self.ask_coordinator(
                coordinator, request, error_of, timeout_ms=left_ms, version_max=version_max
            )

        what = f'{_name(request)} for {coordinator[0]} "{coordinator[1]}"'
        return self.retry(what, attempt, timeout_ms=timeout_ms)

    def ask_coordinator(
        self,
        coordinator: tuple[CoordinatorKind, str],
        request: object,
        error_of: Callable[[T], int],
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> T:
        """One attempt of `call_coordinator`: raises retriable errors, returns fatal ones."""
        kind, key = coordinator
        node_id = self._find_coordinator(kind, key, timeout_ms)
        limit_ms = min(timeout_ms, self.config.request_timeout_ms)
        future = self.submit(node_id, request, timeout_ms=limit_ms, version_max=version_max)
        try:
            answer = cast(T, self._result(future, limit_ms, _name(request)))
        except (ConnectionFailed, RequestTimeout):
            self.forget_coordinator(kind, key)
            raise
        code = code_of(error_of(answer))
        if code in COORDINATOR_LOST:
            self.forget_coordinator(kind, key)
        if code in RETRIABLE:
            check(code, f'{_name(request)} for {kind} "{key}" at broker {node_id}')
        return answer

    def retry(self, what: str, attempt: Callable[[int], T], *, timeout_ms: int | None = None) -> T:
        """Call `attempt(time left in ms)` until it succeeds; see Retrier.

        Before the first response of any broker, all calls together take bootstrap_timeout_ms, but
        each has time for an attempt or two.
        """
        limit_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        if self._reached or self.config.bootstrap_timeout_ms is None:
            return self._retrier.run(what, attempt, timeout_ms=limit_ms)
        now_ms = self.clock.monotonic_ms()
        if self._looking_since_ms is None:
            self._looking_since_ms = now_ms
        first_ms = self._looking_since_ms + self.config.bootstrap_timeout_ms - now_ms
        first_ms = max(first_ms, min(ATTEMPT_MS_MIN, self.config.bootstrap_timeout_ms))
        try:
            return self._retrier.run(what, attempt, timeout_ms=min(first_ms, limit_ms))
        except RequestTimeout as error:
            if not self._reached and first_ms <= limit_ms:
                raise self._unreachable(error, first_ms) from error
            left_ms = now_ms + limit_ms - self.clock.monotonic_ms()
            if not self._reached or left_ms <= 0:
                raise
        return self._retrier.run(what, attempt, timeout_ms=left_ms)

    def _unreachable(self, error: RequestTimeout, waited_ms: int) -> BrokersUnreachable:
        last = error.__cause__
        # A call that times out between two attempts to connect cannot tell why they fail.
        why = self._not_connected or f"timed out after {waited_ms} ms"
        if isinstance(last, MillstreamError) and not isinstance(last, RequestTimeout):
            why = last.message
        return BrokersUnreachable(
            f"no broker responds: {why}",
            hint="start a broker (`millstream up`), or set the address of a running one",
        )

    def _result(
        self, future: Future[object], timeout_ms: int, what: str, *, grace_ms: int = GRACE_MS
    ) -> object:
        try:
            answer = future.result((timeout_ms + grace_ms) / 1000)
        except FutureTimeout:
            raise RequestTimeout(f"{what} was not answered within {timeout_ms} ms") from None
        self._reached = True
        return answer

    # --- cached metadata, without waiting -----------------------------------------------------

    def nodes(self) -> list[Node]:
        """The brokers of the last metadata; never waits."""
        return self.transport.nodes()

    def known_topic(self, topic: str) -> TopicInfo | None:
        """The metadata of a topic, errors included; never waits."""
        return self._topics.get(topic)

    def known_partition(self, tp: TopicPartition) -> PartitionInfo | None:
        """The metadata of a partition; never waits."""
        topic = self._topics.get(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    def known_leader(self, tp: TopicPartition) -> int | None:
        """The leader of a partition, if it is known; never waits."""
        found = self.known_partition(tp)
        return None if found is None or found.leader == NO_LEADER else found.leader

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic by its id; never waits."""
        for topic in tuple(self._topics.values()):
            if topic.id == topic_id:
                return topic.name
        return None

    def follow(self, topics: Iterable[str]) -> None:
        """Include these topics in every refresh from now on; never waits."""
        with self._lock:
            missing = set(topics) - self._followed
            if missing:
                self._followed |= missing
                self._refreshed_ms = None

    def unfollow(self, topics: Iterable[str]) -> None:
        """Stop following topics that are no longer used; never waits."""
        with self._lock:
            for topic in topics:
                self._followed.discard(topic)
                self._topics.pop(topic, None)

    def on_refresh(self, listener: Callable[[], None]) -> None:
        """Call a function, on the transport's thread, after every refresh, even a failed one."""
        self._listeners.append(listener)

    def invalidate(self, topic: str | None = None) -> None:
        """Mark the metadata as stale: the next access refreshes it; never waits."""
        with self._lock:
            if topic is not None:
                self._followed.add(topic)
            self._refreshed_ms = None

    def learn_leader(self, tp: TopicPartition, leader: int, leader_epoch: int) -> bool:
        """Use a newer leader from a response, if that broker is known."""
        with self._lock:
            topic = self._topics.get(tp.topic)
            known = None if topic is None else topic.partitions.get(tp.partition)
            if topic is None or known is None or leader_epoch <= known.leader_epoch:
                return False
            if all(node.id != leader for node in self.transport.nodes()):
                return False
            changed = PartitionInfo(
                tp.partition, leader, leader_epoch, known.replicas, known.in_sync
            )
            partitions = {**topic.partitions, tp.partition: changed}
            self._topics[tp.topic] = TopicInfo(topic.name, topic.id, topic.is_internal, partitions)
            return True

    # --- refreshing ---------------------------------------------------------------------------

    def refresh_soon(self) -> int:
        """Start a refresh if metadata is stale and no refresh is under way or backing off.

        Never waits; returns the time in ms until the next call.
        """
        with self._lock:
            now_ms = self.clock.monotonic_ms()
            if self._refreshing is not None:
                return self.config.request_timeout_ms
            if self._refreshed_ms is not None:
                age_ms = now_ms - self._refreshed_ms
                if age_ms < self.config.metadata_max_age_ms:
                    return self.config.metadata_max_age_ms - age_ms
            delay_ms = self.backoff.delay_ms(max(1, self._failures))
            if self._asked_ms and now_ms < self._asked_ms + delay_ms:
                return self._asked_ms + delay_ms - now_ms
        self._start_refresh()
        return self.config.request_timeout_ms

    def refresh(
        self, topics: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Refresh the metadata of the followed topics, and of these, and wait for it."""
        if topics is not None:
            self.follow(topics)

        self.retry("refreshing the metadata", self._refresh_once, timeout_ms=timeout_ms)

    def _refresh_once(self, left_ms: int) -> None:
        future = self._start_refresh()
        request_ms = self.config.request_timeout_ms
        # The request has its own timeout and may serve others, too; this call may have less time.
        grace_ms = 0 if left_ms < request_ms else GRACE_MS
        self._result(future, min(left_ms, request_ms), "Metadata", grace_ms=grace_ms)

    def _start_refresh(self) -> Future[object]:
        with self._lock:
            if self._refreshing is not None:
                return self._refreshing
            if self._closed:
                raise ClientError("the client is closed")
            asked = sorted(self._followed)
            done: Future[object] = Future()
            self._refreshing = done
            self._asked_ms = self.clock.monotonic_ms()
        request = MetadataRequest(
            [MetadataRequestTopic(name=name) for name in asked],
            allow_auto_topic_creation=self.config.allow_auto_create_topics,
        )
        try:
            future = self.submit(None, request)
        except MillstreamError as error:
            self._finish_refresh(done, asked, error)
            return done

        def completed(answered: Future[object]) -> None:
            failure = answered.exception()
            self._finish_refresh(done, asked, failure or answered.result())

        future.add_done_callback(completed)
        return done

    def _finish_refresh(self, done: Future[object], asked: list[str], answer: object) -> None:
        with self._lock:
            self._refreshing = None
            if isinstance(answer, MetadataResponse):
                self._reached = True
                self._failures = 0
                self._update(answer, asked)
            else:
                self._failures += 1
                if isinstance(answer, ConnectionFailed):
                    self._not_connected = answer.message
        if isinstance(answer, BaseException):
            done.set_exception(answer)
        else:
            done.set_result(answer)
        for listener in tuple(self._listeners):
            listener()

    def _update(self, response: MetadataResponse, asked: list[str]) -> None:
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:
            self.transport.update_nodes(read_brokers(response))
        complete = self._followed <= set(asked)
        for topic in response.topics:
            if topic.name is None:
                continue
            read = read_topic(topic, self._topics.get(topic.name))
            self._topics[topic.name] = read
            troubled = read.error in _PASSING or any(
                partition.leader == NO_LEADER for partition in read.partitions.values()
            )
            complete = complete and not troubled
        self._refreshed_ms = self.clock.monotonic_ms() if complete else None

    # --- metadata, with waiting --------------------------------------------------------------

    def topic(self, topic: str, *, timeout_ms: int | None = None) -> TopicInfo:
        """The metadata of an existing topic; waits while the topic is being created."""

        def attempt(left_ms: int) -> TopicInfo:
            known = self._topics.get(topic)
            if known is None or known.error:
                self.follow((topic,))
                self._refresh_once(left_ms)
                known = self._topics.get(topic)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else known.error
            check(
                error,
                f'topic "{topic}"',
                hint="create it, or let the broker create it (auto.create.topics.enable)",
            )
            assert known is not None
            return known

        known = self._topics.get(topic)
        if known is not None and not known.error:
            return known
        return self.retry(f'looking up topic "{topic}"', attempt, timeout_ms=timeout_ms)

    def partitions(self, topic: str, *, timeout_ms: int | None = None) -> list[int]:
        """The partition numbers of a topic; waits until they are known."""
        return sorted(self.topic(topic, timeout_ms=timeout_ms).partitions)

    def topic_id(self, topic: str, *, timeout_ms: int | None = None) -> bytes:
        """The id of a topic; waits until it is known."""
        return self.topic(topic, timeout_ms=timeout_ms).id

    def leader(self, tp: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """The broker that leads a partition; waits while there is none."""

        def attempt(left_ms: int) -> int:
            if (found := self.known_leader(tp)) is not None:
                return found
            self.follow((tp.topic,))
            self._refresh_once(left_ms)
            if (found := self.known_leader(tp)) is not None:
                return found
            known = self._topics.get(tp.topic)
            if known is not None and not known.error and tp.partition not in known.partitions:
                raise BrokerError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f'topic "{tp.topic}" has no partition {tp.partition}',
                    hint=f"it has {len(known.partitions)} partitions",
                )
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader")

        return self.retry(f"finding the leader of {tp}", attempt, timeout_ms=timeout_ms)

    def topics(self, *, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """All topics of the cluster, from a new request; they are not followed."""
        response = self.call(
            None,
            MetadataRequest(None, allow_auto_topic_creation=False),
            MetadataResponse,
            timeout_ms=timeout_ms,
        )
        self.transport.update_nodes(read_brokers(response))
        return {topic.name: read_topic(topic, None) for topic in response.topics if topic.name}

    # --- coordinators -------------------------------------------------------------------------

    def known_coordinator(self, kind: CoordinatorKind, key: str) -> int | None:
        """The coordinator, if it is known; never waits."""
        return self._coordinators.get((kind, key))

    def coordinator(self, kind: CoordinatorKind, key: str, *, timeout_ms: int | None = None) -> int:
        """The broker that coordinates a group or transactional id; waits until there is one."""
        return self.retry(
            f'finding the coordinator of {kind} "{key}"',
            lambda left_ms: self._find_coordinator(kind, key, left_ms),
            timeout_ms=timeout_ms,
        )

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        """Mark the coordinator as stale; never waits."""
        self._coordinators.pop((kind, key), None)

    def _find_coordinator(self, kind: CoordinatorKind, key: str, left_ms: int) -> int:
        known = self._coordinators.get((kind, key))
        if known is not None and any(node.id == known for node in self.transport.nodes()):
            return known
        limit_ms = min(left_ms, self.config.request_timeout_ms)
        response = self.ask(
            None, find_coordinator(kind, key), FindCoordinatorResponse, timeout_ms=limit_ms
        )
        found = read_coordinator(response)
        check(
            found.error_code,
            f'looking for the coordinator of {kind} "{key}"',
            message=found.error_message,
        )
        self.learn_coordinator(kind, key, found)
        return found.node_id

    def learn_coordinator(self, kind: CoordinatorKind, key: str, found: Coordinator) -> None:
        """Cache a coordinator and its address; never waits."""
        nodes = {node.id: node for node in self.transport.nodes()}
        if found.node_id not in nodes:
            nodes[found.node_id] = Node(found.node_id, found.host, found.port)
            self.transport.update_nodes(nodes.values())
        self._coordinators[(kind, key)] = found.node_id

    def close(self) -> None:
        """End all waits and close the transport."""
        with self._lock:
            self._closed = True
        self._retrier.close()
        self.transport.close()


# Transient errors of a topic: retry soon.
_PASSING = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    }
)


def find_coordinator(kind: CoordinatorKind, key: str) -> FindCoordinatorRequest:
    """The request, with the fields of all versions set."""
    return FindCoordinatorRequest(key, KEY_TYPES[kind], [key])


def read_coordinator(response: FindCoordinatorResponse) -> Coordinator:
    """The coordinator in a response of any version."""
    if response.coordinators:
        return response.coordinators[0]
    return Coordinator(
        "",
        response.node_id,
        response.host,
        response.port,
        response.error_code,
        response.error_message,
    )


def _name(request: object) -> str:
    return type(request).__name__.removesuffix("Request")


def _describe(request: object, node_id: int | None) -> str:
    return f"{_name(request)} to {'any broker' if node_id is None else f'broker {node_id}'}"
