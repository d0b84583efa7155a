"""Commits that do not wait, against a scripted coordinator on a manual clock."""

import pytest

from broker.client.api import GroupMetadata, OffsetAndMetadata
from broker.client.cluster import Cluster
from broker.client.committer import Committer
from broker.client.coordinator_link import CoordinatorLink
from broker.client.wake_signal import Signal
from broker.clock import ManualClock
from broker.model import TopicPartition
from broker.protocol.messages.offsets import OffsetCommitRequest
from tests.broker.client.scripted import ScriptedTransport


def test_a_coordinator_lost_between_finding_and_asking_it_is_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    transport = ScriptedTransport()
    cluster = Cluster(transport, clock)
    link = CoordinatorLink(cluster, "group", Signal(clock))
    committer = Committer(cluster, link, lambda: GroupMetadata("group"))
    step = link.step

    def lose_it() -> int | None:
        assert step() is None
        link.forget()  # as a heartbeat that is not answered does, in its own thread
        return None

    with monkeypatch.context() as patched:
        patched.setattr(link, "step", lose_it)
        committer.commit_async({TopicPartition("topic", 0): OffsetAndMetadata(5)}, None)
    assert not transport.requests(OffsetCommitRequest)
    clock.advance(1_000)
    committer.step()
    assert len(transport.requests(OffsetCommitRequest)) == 1
