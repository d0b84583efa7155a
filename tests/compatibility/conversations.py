"""Requests that are wrong, early, late or odd; what a broker answers must be what Kafka answers.

Each conversation takes `ask(request, version)` and returns nothing: the caller notes the answers.
"""

from collections.abc import Callable
from typing import Any

from broker.batch.codec import encode_batch
from broker.model import ProducerIdentity
from broker.protocol.messages import configs, fetch, groups, metadata, offsets, topics, transactions
from broker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

# Answers are messages of many kinds; the few fields read here are checked by the codec.
Ask = Callable[[object, int], Any]
Conversation = Callable[[Ask], None]

NOW_MS = 1_700_000_000_000
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


def create(ask: Ask, name: str, count: int = 1, **settings: str) -> bytes:
    """Makes a topic and returns its id, once its leaders answer."""
    configured = [
        topics.CreatableTopicConfig(key.replace("_", "."), value) for key, value in settings.items()
    ]
    new = topics.CreatableTopic(name, count, 1, configs=configured)
    made = ask(topics.CreateTopicsRequest([new], 30_000), 7).topics[0].topic_id
    return bytes(made)


def batch(count: int = 1, **fields: Any) -> bytes:
    return encode_batch([(b"key", b"value", (), NOW_MS + each) for each in range(count)], **fields)


def produce(topic: str, records: bytes, *, partition: int = 0, **fields: Any) -> ProduceRequest:
    data = [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, records)])]
    return ProduceRequest(**{"acks": -1, "timeout_ms": 30_000, "topic_data": data, **fields})


def strange_topics(ask: Ask) -> None:
    new = topics.CreatableTopic
    setting = topics.CreatableTopicConfig
    assignment = topics.CreatableReplicaAssignment
    for each in (
        new("", 1, 1),
        new("bad name", 1, 1),
        new("..", 1, 1),
        new("x" * 250, 1, 1),
        new("none", 0, 1),
        new("negative", -5, 1),
        new("replicas", 1, 2),
        new("zero-replicas", 1, 0),
        new("unknown-setting", 1, 1, configs=[setting("no.such", "1")]),
        new("wrong-setting", 1, 1, configs=[setting("retention.ms", "soon")]),
        new("low-setting", 1, 1, configs=[setting("segment.ms", "0")]),
        new("wrong-policy", 1, 1, configs=[setting("cleanup.policy", "keep")]),
        new("null-setting", 1, 1, configs=[setting("retention.ms", None)]),
        new("default-counts", -1, -1),
        new("assigned", -1, -1, [assignment(0, [1]), assignment(1, [1])]),
        new("assigned-and-counted", 2, 1, [assignment(0, [1])]),
        new("assigned-with-a-gap", -1, -1, [assignment(0, [1]), assignment(2, [1])]),
        new("assigned-elsewhere", -1, -1, [assignment(0, [9])]),
        new("default-counts", 1, 1),
    ):
        ask(topics.CreateTopicsRequest([each], 30_000), 7)
    twice = [new("twice", 1, 1), new("twice", 1, 1)]
    ask(topics.CreateTopicsRequest(twice, 30_000), 7)
    ask(topics.CreateTopicsRequest([new("checked", 1, 1)], 30_000, validate_only=True), 6)
    grow = topics.CreatePartitionsTopic
    for name, count in (("default-counts", 1), ("default-counts", 0), ("missing", 3)):
        ask(topics.CreatePartitionsRequest([grow(name, count, None)], 30_000), 3)
    state = topics.DeleteTopicState
    ask(topics.DeleteTopicsRequest([state("missing")], timeout_ms=30_000), 6)
    ask(topics.DeleteTopicsRequest([state(None, b"?" * 16)], timeout_ms=30_000), 6)
    ask(topics.DeleteTopicsRequest([state("both", b"?" * 16)], timeout_ms=30_000), 6)


def strange_settings(ask: Ask) -> None:
    create(ask, "set")
    resource = configs.IncrementalAlterConfigsRequestAlterConfigsResource
    change = configs.IncrementalAlterConfigsRequestAlterableConfig
    topic, broker, nothing = 2, 4, 99
    for each in (
        resource(topic, "missing", [change("retention.ms", 0, "1")]),
        resource(topic, "set", [change("no.such", 0, "1")]),
        resource(topic, "set", [change("retention.ms", 0, "soon")]),
        resource(topic, "set", [change("retention.ms", 0, None)]),
        resource(topic, "set", [change("retention.ms", 2, "1")]),
        resource(topic, "set", [change("cleanup.policy", 2, "compact")]),
        resource(topic, "set", [change("cleanup.policy", 3, "delete")]),
        resource(topic, "set", [change("retention.ms", 0, "1"), change("retention.ms", 0, "2")]),
        resource(topic, "set", [change("retention.ms", 0, "777")]),
        resource(topic, "set", [change("cleanup.policy", 1, None)]),
        resource(broker, "77", [change("no.such", 0, "1")]),
        resource(nothing, "set", [change("retention.ms", 0, "1")]),
    ):
        ask(configs.IncrementalAlterConfigsRequest([each]), 1)
    asked = configs.DescribeConfigsResource
    keys = ["retention.ms", "cleanup.policy", "no.such"]
    ask(configs.DescribeConfigsRequest([asked(topic, "set", keys)]), 4)
    ask(configs.DescribeConfigsRequest([asked(topic, "missing", keys)]), 4)
    ask(configs.DescribeConfigsRequest([asked(topic, "bad name", keys)]), 4)
    ask(configs.DescribeConfigsRequest([asked(nothing, "set", keys)]), 4)
    ask(configs.DescribeConfigsRequest([asked(broker, "77", keys)]), 4)


def strange_metadata(ask: Ask) -> None:
    named = metadata.MetadataRequestTopic
    for name in ("missing", "bad name", ""):
        request = metadata.MetadataRequest([named(name=name)], allow_auto_topic_creation=False)
        ask(request, 12)
    ask(metadata.MetadataRequest([named(b"?" * 16, None)], allow_auto_topic_creation=False), 12)
    for kind in (0, 1, 7):
        ask(metadata.FindCoordinatorRequest(key_type=kind, coordinator_keys=["", "a"]), 4)
    ask(metadata.FindCoordinatorRequest(key="a", key_type=7), 2)
    asked = metadata.DescribeTopicPartitionsRequest
    ask(asked([metadata.TopicRequest("missing")], 10), 0)
    ask(asked([metadata.TopicRequest("bad name")], 10), 0)


def strange_batches(ask: Ask) -> None:
    create(ask, "batches")
    create(ask, "compacted", cleanup_policy="compact")
    good = batch(3)
    ask(produce("batches", good), 9)
    ask(produce("missing", good), 9)
    ask(produce("batches", good, partition=5), 9)
    ask(produce("batches", good, acks=2), 9)
    ask(produce("batches", b""), 9)
    ask(produce("batches", good[:-1]), 9)
    ask(produce("batches", good[:40]), 9)
    ask(produce("batches", good[:-1] + b"!"), 9)
    ask(produce("batches", good[:16] + b"\x01" + good[17:]), 9)
    ask(produce("batches", good + good), 9)
    ask(produce("batches", bytes(100)), 9)
    keyless = encode_batch([(None, b"value", (), NOW_MS)])
    ask(produce("compacted", keyless), 9)
    late = encode_batch([(b"key", b"value", (), 2**62)])
    ask(produce("batches", late), 9)
    ask(produce("batches", batch(transactional=True, producer=ProducerIdentity(5, 0))), 9)


def strange_producers(ask: Ask) -> None:
    create(ask, "sequences")
    given = ask(transactions.InitProducerIdRequest(None, 60_000), 4)

    def send(sequence: int, count: int = 1, *, epoch: int = 0) -> None:
        producer = ProducerIdentity(given.producer_id, epoch)
        ask(produce("sequences", batch(count, producer=producer, base_sequence=sequence)), 9)

    send(0, 2)
    send(0, 2)
    send(2)
    send(4)
    send(0, 2)
    send(0, 3)
    send(3, epoch=1)
    send(0, epoch=1)
    send(3)
    asked = transactions.TopicRequest
    ask(transactions.DescribeProducersRequest([asked("sequences", [0, 7])]), 0)
    ask(transactions.DescribeProducersRequest([asked("missing", [0])]), 0)


def strange_reads(ask: Ask) -> None:
    topic_id = create(ask, "reads")
    ask(produce("reads", batch(10)), 9)

    def read(offset: int, version: int, **where: Any) -> None:
        partition = fetch.FetchPartition(
            where.get("partition", 0), where.get("epoch", -1), offset, partition_max_bytes=100_000
        )
        topic = fetch.FetchTopic(where.get("name", "reads"), where.get("id", topic_id), [partition])
        request = fetch.FetchRequest(max_bytes=100_000, topics=[topic])
        request.session_id, request.session_epoch = where.get("session", (0, -1))
        ask(request, version)

    for version in (11, 12, 16):
        for offset in (0, 10, 11, -1):
            read(offset, version)
        read(0, version, partition=5)
        read(0, version, epoch=0)
        read(0, version, epoch=9)
    read(0, 12, name="missing")
    read(0, 16, id=b"?" * 16)
    read(0, 16, session=(12345, 1))
    read(0, 16, session=(0, 5))

    def lookup(timestamp: int, version: int = 8, **where: Any) -> None:
        partition = fetch.ListOffsetsPartition(
            where.get("partition", 0), where.get("epoch", -1), timestamp
        )
        topic = fetch.ListOffsetsTopic(where.get("name", "reads"), [partition])
        ask(fetch.ListOffsetsRequest(-1, topics=[topic]), version)

    for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, 0, NOW_MS + 5, NOW_MS + 99, -4, -5, -99):
        lookup(timestamp)
        lookup(timestamp, 11)
    lookup(LATEST, partition=5)
    lookup(LATEST, name="missing")
    lookup(LATEST, epoch=9)
    lookup(MAX_TIMESTAMP, 6)
    epochs = fetch.OffsetForLeaderPartition
    for asked in (epochs(0, -1, 0), epochs(0, -1, 9), epochs(0, 9, 0), epochs(7, -1, 0)):
        ask(
            fetch.OffsetForLeaderEpochRequest(-2, [fetch.OffsetForLeaderTopic("reads", [asked])]), 4
        )
    cut = topics.DeleteRecordsPartition
    for partition, offset in ((0, 11), (0, 4), (0, 2), (0, -1), (0, -5), (5, 0)):
        request = [topics.DeleteRecordsTopic("reads", [cut(partition, offset)])]
        ask(topics.DeleteRecordsRequest(request, 30_000), 2)


def strange_members(ask: Ask) -> None:
    protocol = [groups.JoinGroupRequestProtocol("range", b"")]
    join = groups.JoinGroupRequest
    for each in (
        join("", 10_000, 10_000, "", None, "consumer", protocol),
        join("group", 1, 10_000, "", None, "consumer", protocol),
        join("group", 10**9, 10_000, "", None, "consumer", protocol),
        join("group", 10_000, 10_000, "stranger", None, "consumer", protocol),
        join("group", 10_000, 10_000, "", None, "", protocol),
        join("group", 10_000, 10_000, "", None, "consumer", []),
    ):
        ask(each, 7)
    # A group of its own: whoever is given an id and does not come back is waited for.
    ask(join("waiting", 10_000, 10_000, "", None, "consumer", protocol), 7)
    static = ask(join("group", 10_000, 10_000, "", "fixed", "consumer", protocol), 7)
    member, generation = static.member_id, static.generation_id
    sync = groups.SyncGroupRequest
    share = [groups.SyncGroupRequestAssignment(member, b"all")]
    ask(sync("group", generation + 1, member, "fixed", "consumer", "range", share), 5)
    ask(sync("group", generation, member, "fixed", "connect", "range", share), 5)
    ask(sync("group", generation, member, "fixed", "consumer", "sticky", share), 5)
    ask(sync("group", generation, "stranger", None, "consumer", "range", share), 5)
    ask(sync("group", generation, member, "fixed", "consumer", "range", share), 5)
    ask(join("group", 10_000, 10_000, "", None, "connect", protocol), 3)
    beat = groups.HeartbeatRequest
    ask(beat("group", generation, member, "fixed"), 4)
    ask(beat("group", generation + 1, member, "fixed"), 4)
    ask(beat("group", generation, "stranger", "fixed"), 4)
    ask(beat("group", generation, "stranger"), 4)
    ask(beat("group", generation, member, "other"), 4)
    ask(beat("missing", generation, member), 4)
    for name in ("group", "missing"):
        ask(groups.DescribeGroupsRequest([name]), 5)
        ask(groups.DescribeGroupsRequest([name]), 6)
        ask(groups.DeleteGroupsRequest([name]), 2)
    leave = groups.LeaveGroupRequest
    ask(leave("group", members=[groups.MemberIdentity("stranger", None)]), 5)
    ask(leave("group", members=[groups.MemberIdentity("", "other")]), 5)
    ask(leave("group", members=[groups.MemberIdentity("stranger", "fixed")]), 5)
    ask(leave("group", members=[groups.MemberIdentity("", "fixed")]), 5)
    ask(leave("missing", members=[groups.MemberIdentity("stranger", None)]), 5)
    ask(groups.DescribeGroupsRequest(["group"]), 6)
    ask(groups.DeleteGroupsRequest(["group"]), 2)


def strange_heartbeats(ask: Ask) -> None:
    def beat(group: str, member: str, epoch: int, **fields: Any) -> None:
        ask(ConsumerGroupHeartbeatRequest(group, member, epoch, **fields), 1)

    joins = {"rebalance_timeout_ms": 1000, "topic_partitions": []}
    named = {"subscribed_topic_names": ["t"], **joins}
    beat("", "m", 0, **named)
    beat("new", "m", 5)
    beat("new", "m", 0)
    beat("new", "", 0, **named)
    beat("new", "m", 0, **named)
    beat("new", "m", 7)
    beat("new", "m", -1)
    beat("new", "m", -1)
    beat("new", "m", -2)
    beat("new", "m", -3)
    beat("new", "n", 0, server_assignor="no", **named)
    beat("new", "n", 0, subscribed_topic_regex="(", **joins)
    beat("new", "n", 0, rebalance_timeout_ms=-1, subscribed_topic_names=["t"], topic_partitions=[])
    beat("new", "n", 0, instance_id="", **named)


def strange_offsets(ask: Ask) -> None:
    create(ask, "kept")

    def commit(group: str, generation: int, member: str, **where: Any) -> None:
        partition = offsets.OffsetCommitRequestPartition(
            where.get("partition", 0), where.get("offset", 3), -1, where.get("note", "")
        )
        topic = offsets.OffsetCommitRequestTopic(where.get("name", "kept"), partitions=[partition])
        ask(offsets.OffsetCommitRequest(group, generation, member, topics=[topic]), 8)

    commit("simple", -1, "")
    commit("", -1, "")
    commit("simple", 5, "")
    commit("simple", -1, "stranger")
    commit("simple", 5, "stranger")
    commit("simple", -1, "", partition=9)
    commit("simple", -1, "", name="missing")
    commit("simple", -1, "", note="x" * 5000)
    commit("simple", -1, "", offset=-7)

    def look(group: str, **where: Any) -> None:
        wanted = [offsets.OffsetFetchRequestTopics("kept", partition_indexes=[0, 7])]
        asked = offsets.OffsetFetchRequestGroup(
            group, where.get("member"), where.get("epoch", -1), where.get("wanted", wanted)
        )
        ask(offsets.OffsetFetchRequest(groups=[asked]), 9)

    look("simple")
    look("simple", wanted=None)
    look("missing")
    look("missing", wanted=None)
    look("")
    look("simple", member="stranger", epoch=3)
    forget = offsets.OffsetDeleteRequestTopic
    parts = [offsets.OffsetDeleteRequestPartition(0), offsets.OffsetDeleteRequestPartition(9)]
    for group in ("simple", "missing"):
        ask(
            offsets.OffsetDeleteRequest(group, [forget("kept", parts), forget("missing", parts)]), 0
        )


def strange_transactions(ask: Ask) -> None:
    create(ask, "spent")
    start = transactions.InitProducerIdRequest
    ask(start("", 60_000), 4)
    ask(start("writer", 10**9), 4)
    ask(start("writer", 0), 4)
    ask(start("writer", 60_000, 999, 3), 4)
    given = ask(start("writer", 60_000), 4)
    pid = given.producer_id

    def add(name: str, producer_id: int, epoch: int, topic: str = "spent", number: int = 0) -> None:
        part = [transactions.AddPartitionsToTxnTopic(topic, [number])]
        ask(transactions.AddPartitionsToTxnRequest([], name, producer_id, epoch, part), 3)

    add("missing", pid, 0)
    add("writer", pid + 1, 0)
    add("writer", pid, 1)
    add("writer", pid, 0, topic="missing")
    add("writer", pid, 0, number=9)
    end = transactions.EndTxnRequest
    ask(end("missing", pid, 0, True), 3)
    ask(end("writer", pid, 1, True), 3)
    ask(end("writer", pid + 1, 0, True), 3)
    ask(end("writer", pid, 0, True), 3)
    marked = batch(producer=ProducerIdentity(pid, 0), base_sequence=0, transactional=True)
    ask(produce("spent", marked, transactional_id="writer"), 9)
    ask(produce("spent", marked), 9)
    add("writer", pid, 0)
    ask(produce("spent", marked, transactional_id="writer"), 9)
    ask(transactions.AddOffsetsToTxnRequest("writer", pid, 1, "group"), 3)
    ask(transactions.AddOffsetsToTxnRequest("missing", pid, 0, "group"), 3)
    ask(transactions.AddOffsetsToTxnRequest("writer", pid, 0, ""), 3)
    ask(transactions.DescribeTransactionsRequest(["writer", "missing"]), 0)
    ask(end("writer", pid, 0, False), 3)
    ask(end("writer", pid, 0, True), 3)
    ask(start("writer", 60_000, pid, 0), 4)
    ask(start("writer", 60_000, pid, 7), 4)
    ask(transactions.ListTransactionsRequest(["NoSuchState"]), 1)


def implicit_transactions(ask: Ask) -> None:
    """Transactions as clients of today hold them: joined by producing, epochs that grow."""
    topic_id = create(ask, "implicit")
    start, end = transactions.InitProducerIdRequest, transactions.EndTxnRequest
    given = ask(start("implicit", 60_000), 5)
    pid = given.producer_id

    def send(epoch: int, sequence: int, name: str | None = "implicit", version: int = 12) -> None:
        producer = ProducerIdentity(pid, epoch)
        records = batch(producer=producer, base_sequence=sequence, transactional=True)
        request = produce("implicit", records, transactional_id=name)
        request.topic_data[0].topic_id = topic_id
        ask(request, version)

    def commit_offset(epoch: int, group: str) -> None:
        partition = transactions.TxnOffsetCommitRequestPartition(0, 5, -1, "")
        topic = transactions.TxnOffsetCommitRequestTopic("implicit", [partition])
        request = transactions.TxnOffsetCommitRequest("implicit", group, pid, epoch)
        request.generation_id, request.topics = -1, [topic]
        ask(request, 5)

    ask(end("implicit", pid, 0, True), 5)
    send(0, 0)
    send(1, 0)
    send(1, 1, version=13)
    send(1, 1, version=13)
    send(1, 5)
    send(0, 0)
    commit_offset(1, "implicit-group")
    commit_offset(0, "implicit-group")
    ask(transactions.DescribeTransactionsRequest(["implicit"]), 0)
    ask(end("implicit", pid, 1, True), 5)
    ask(end("implicit", pid, 1, True), 5)
    ask(end("implicit", pid, 1, False), 5)
    send(1, 2)
    send(2, 0)
    ask(end("implicit", pid, 2, False), 5)
    ask(end("implicit", pid, 3, False), 5)
    send(3, 0, name="other")
    send(9, 0)
    ask(start("implicit", 60_000), 5)
    send(3, 0)


def fetch_sessions(ask: Ask) -> None:
    """A session tells only what is new, and is refused when client and broker disagree."""
    topic_id = create(ask, "session", 2)
    ask(produce("session", batch(2)), 9)

    def read(session: int, epoch: int, *parts: tuple[int, int], forgotten: int = -1) -> Any:
        asked = [fetch.FetchPartition(number, -1, offset) for number, offset in parts]
        for each in asked:
            each.partition_max_bytes = 100_000
        request = fetch.FetchRequest(max_bytes=100_000, session_id=session, session_epoch=epoch)
        request.topics = [fetch.FetchTopic("session", topic_id, asked)] if asked else []
        if forgotten >= 0:
            request.forgotten_topics_data = [fetch.ForgottenTopic("session", topic_id, [forgotten])]
        return ask(request, 16)

    session = read(0, 0, (0, 0), (1, 0)).session_id
    read(session, 1, (0, 2))
    ask(produce("session", batch(1), partition=1), 9)
    read(session, 2)
    read(session, 2)
    read(session, 3, (1, 1))
    ask(produce("session", batch(1)), 9)
    read(session, 4, forgotten=0)
    read(session, 5, (7, 0))
    read(session, -1)
    read(session, 6)


def server_assigned_groups(ask: Ask) -> None:
    """Two members of a group that the broker assigns: who gets what, and when."""
    name = "assigned-by-the-broker"
    topic_id = create(ask, name, 4)
    # A group that comes at once may be assigned before Kafka's coordinator knows of the topic.
    for number in range(4):
        ask(produce(name, batch(), partition=number), 9)

    def beat(member: str, epoch: int, owned: list[int] | None = None, **fields: Any) -> Any:
        parts = None if owned is None else [TopicPartitions(topic_id, owned)] if owned else []
        request = ConsumerGroupHeartbeatRequest(name, member, epoch, topic_partitions=parts)
        for field, value in fields.items():
            setattr(request, field, value)
        return ask(request, 1)

    joins = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [name]}
    first = beat("first", 0, [], **joins).member_epoch
    first = beat("first", first, [0, 1, 2, 3]).member_epoch
    second = beat("second", 0, [], **joins).member_epoch
    first = beat("first", first).member_epoch
    second = beat("second", second).member_epoch
    first = beat("first", first, [0, 1]).member_epoch
    second = beat("second", second).member_epoch
    beat("second", second, [2, 3])
    ask(ConsumerGroupDescribeRequest([name, "missing"]), 1)
    # The last partition has moved from the first to the second.
    partition = offsets.OffsetCommitRequestPartition(3, 3, -1, "")
    topic = offsets.OffsetCommitRequestTopic(name, partitions=[partition])
    for member, epoch in (("first", first), ("first", first - 1), ("second", 99), ("none", 1)):
        ask(offsets.OffsetCommitRequest(name, epoch, member, topics=[topic]), 9)
    ask(groups.HeartbeatRequest(name, first, "first"), 4)
    ask(groups.DescribeGroupsRequest([name]), 6)
    ask(groups.ListGroupsRequest(["Stable"], ["consumer"]), 5)
    ask(groups.DeleteGroupsRequest([name]), 2)
    beat("first", -1)
    beat("second", second)
    beat("second", -1)
    ask(groups.DeleteGroupsRequest([name]), 2)


CONVERSATIONS: dict[str, Conversation] = {
    each.__name__: each
    for each in (
        strange_topics,
        strange_settings,
        strange_metadata,
        strange_batches,
        strange_producers,
        strange_reads,
        strange_members,
        strange_heartbeats,
        strange_offsets,
        strange_transactions,
        implicit_transactions,
        server_assigned_groups,
        fetch_sessions,
    )
}
