"""Subscription: the subscribed topics of a consumer, and the assignment by its group.

Eager: all partitions are revoked before each rebalance, all members stop until it is over.
Cooperative: only partitions that are no longer assigned are revoked, then another rebalance assigns
them to new owners. A member is cooperative when all its assignors are.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import cast

from broker.client.api import GroupMetadata, JoinedMember, RebalanceListener
from broker.client.assignors import Assignor, MemberSubscription
from broker.client.assignors.api import NO_GENERATION
from broker.client.cluster import Cluster
from broker.client.consumer_config import ConsumerConfig
from broker.client.consumer_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from broker.client.positions import Positions
from broker.client.wake_signal import Signal
from broker.errors import BrokerError, ErrorCode, MillstreamError
from broker.linear_patterns import Pattern
from broker.model import TopicPartition
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse


class Subscription:
    """The GroupProtocol of a consumer, protocol type "consumer"."""

    protocol_type = PROTOCOL_TYPE

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        config: ConsumerConfig,
        signal: Signal,
        *,
        before_rebalance: Callable[[], None],
    ) -> None:
        """`before_rebalance` commits the positions."""
        self._cluster = cluster
        self._positions = positions
        self._config = config
        self._signal = signal
        self._before_rebalance = before_rebalance
        self._assignors: Mapping[str, Assignor] = {
            assignor.name: assignor for assignor in config.assignors()
        }
        self._generation = NO_GENERATION
        self._joined_topics: frozenset[str] = frozenset()
        self._divided: dict[str, int] | None = (
            None  # as leader: partition counts of assigned topics
        )
        self._group_topics: set[str] = set()
        self._rejoin_reason = ""
        self._listing: Future[object] | None = None
        self._list_again_ms = 0
        self.pattern: re.Pattern[str] | Pattern | None = None
        self.topics: frozenset[str] | None = None
        self.listener = RebalanceListener()

    @property
    def cooperative(self) -> bool:
        """Whether the member keeps its partitions during a rebalance."""
        return all(assignor.cooperative for assignor in self._assignors.values())

    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str] | Pattern, listener: RebalanceListener | None
    ) -> None:
        """Subscribe to these topics, or to all whose whole name matches."""
        self.listener = listener or RebalanceListener()
        if isinstance(topics, re.Pattern | Pattern):
            self.pattern = topics
            self._list_again_ms = 0
            self._listing = None
        else:
            self.pattern = None
            self._set_topics(frozenset(topics))

    def unsubscribe(self) -> None:
        """End the subscription; `revoke_all` must have revoked the partitions."""
        self.pattern = None
        self.topics = None

    def _set_topics(self, topics: frozenset[str]) -> None:
        self._cluster.unfollow((self.topics or frozenset()) - topics)
        self._cluster.follow(topics)
        self.topics = topics

    # --- topics -------------------------------------------------------------------------------

    def step(self) -> int | None:
        """Match the pattern again when it is due; None once topics are known, else a wait."""
        if self.pattern is None:
            return None
        now_ms = self._cluster.clock.monotonic_ms()
        if self._listing is None and now_ms >= self._list_again_ms:
            request = MetadataRequest(None, allow_auto_topic_creation=False)
            self._listing = self._cluster.submit(None, request)
            self._listing.add_done_callback(lambda _: self._signal.set())
        if self._listing is not None and self._listing.done():
            listing, self._listing = self._listing, None
            self._take_listing(listing, now_ms)
        if self.topics is not None:
            return None
        return max(1, self._list_again_ms - now_ms)

    def _take_listing(self, listing: Future[object], now_ms: int) -> None:
        assert self.pattern is not None, "there is a listing only for a pattern"
        try:
            response = cast(MetadataResponse, listing.result())
        except MillstreamError:
            self._list_again_ms = now_ms + self._cluster.config.retry_backoff_ms
            return
        self._list_again_ms = now_ms + self._cluster.config.metadata_max_age_ms
        self._set_topics(
            frozenset(
                topic.name
                for topic in response.topics
                if topic.name is not None
                and not topic.error_code
                and not (topic.is_internal and self._config.exclude_internal_topics)
                and self.pattern.fullmatch(topic.name)
            )
        )

    def _partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        counts = {}
        for topic in topics:
            known = self._cluster.known_topic(topic)
            if known is not None and known.partitions:
                counts[topic] = len(known.partitions)
        return counts

    # --- as a member of the group -------------------------------------------------------------

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """One subscription for each assignor, preferred first."""
        self._joined_topics = self.topics or frozenset()
        owned = tuple(sorted(self._positions.assigned())) if self.cooperative else ()
        return [
            (
                name,
                encode_subscription(
                    MemberSubscription(
                        "",
                        tuple(sorted(self._joined_topics)),
                        owned=owned,
                        generation=self._generation,
                        user_data=assignor.user_data(self._joined_topics),
                        rack=self._config.client_rack or None,
                    )
                ),
            )
            for name, assignor in self._assignors.items()
        ]

    def prepare_join(self, *, lost: bool) -> None:
        """Revoke what must not be held during a rebalance."""
        self._divided = None
        self._rejoin_reason = ""
        held = self._positions.assigned()
        if lost:
            self._generation = NO_GENERATION
            self._lose(held)
            return
        self._before_rebalance()
        if self.cooperative:
            topics = self.topics or frozenset()
            self._revoke({tp for tp in held if tp.topic not in topics})
        else:
            self._revoke(held)

    def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Assign the partitions of all subscribed topics, as the leader."""
        assignor = self._assignor(protocol)
        wishes = [
            decode_subscription(member.member_id, member.instance_id, member.metadata)
            for member in members
        ]
        topics = {topic for wish in wishes for topic in wish.topics}
        if any(self._cluster.known_topic(topic) is None for topic in topics):
            self._cluster.refresh(topics, timeout_ms=self._cluster.config.request_timeout_ms)
        self._divided = self._partition_counts(topics)
        assigned = assignor.assign(wishes, self._divided)
        self._group_topics = topics
        return {member_id: encode_assignment(given) for member_id, given in assigned.items()}

    def on_assignment(self, protocol: str, assignment: bytes, metadata: GroupMetadata) -> None:
        """Apply an assignment; partitions that are no longer assigned are revoked first."""
        given = decode_assignment(assignment)
        self._assignor(protocol).on_assignment(given, metadata.generation_id)
        self._generation = metadata.generation_id
        new = set(given.partitions)
        if self._positions.assigned() - new:
            self._rejoin_reason = "partitions were revoked and can be reassigned"
        self._change_to(new)

    def apply_assignment(self, partitions: set[TopicPartition]) -> None:
        """Apply an assignment by the broker; positions are committed before any is revoked."""
        if self._positions.assigned() - partitions:
            self._before_rebalance()
        self._change_to(partitions)

    def _change_to(self, new: set[TopicPartition]) -> None:
        held = self._positions.assigned()
        self._revoke(held - new)
        self._cluster.follow({tp.topic for tp in new})
        self._positions.assign(sorted(new))
        self.listener.assigned(frozenset(new - held))

    def wants_rejoin(self) -> str:
        """Revoked partitions, a changed subscription or, for the leader, new partitions."""
        if self._rejoin_reason:
            return self._rejoin_reason
        if self.topics is not None and self.topics != self._joined_topics:
            return "the subscription has changed"
        if self._divided is not None and self._divided != self._partition_counts(
            self._group_topics
        ):
            return "the partitions of the topics have changed"
        return ""

    def revoke_all(self) -> None:
        """Revoke all partitions before leaving the group."""
        self._generation = NO_GENERATION
        self._divided = None
        self._revoke(self._positions.assigned())

    def _revoke(self, partitions: set[TopicPartition]) -> None:
        self._drop(partitions, self.listener.revoked)

    def _lose(self, partitions: set[TopicPartition]) -> None:
        self._drop(partitions, self.listener.lost or self.listener.revoked)

    def _drop(
        self, partitions: set[TopicPartition], notify: Callable[[frozenset[TopicPartition]], None]
    ) -> None:
        if not partitions:
            return
        with self._positions.lock:
            for tp in partitions:
                self._positions.state(tp).revoking = True
        try:
            notify(frozenset(partitions))
        finally:
            self._positions.assign(sorted(self._positions.assigned() - partitions))

    def _assignor(self, protocol: str) -> Assignor:
        found = self._assignors.get(protocol)
        if found is None:
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f'the group chose assignor "{protocol}", this member has {list(self._assignors)}',
            )
        return found
