"""The registry's topic: what is written, what is read of others, who may write."""

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from broker.batch.codec import encode_batch
from broker.broker import Broker
from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.errors import RequestTimeout
from broker.model import TopicPartition
from broker.registry.records import BadRecord, NoopRecord, decode, encode
from broker.registry.registry import Registry
from broker.registry.state import RegistryState
from broker.registry.values import Mode, SubjectConfig
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from tests.broker.registry.conftest import SETTINGS
from tests.broker.registry.examples import record, referring, refused
from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_broker import MillstreamBroker
from tests.support.topics import read_topic

A_STRING = '{"subject":"a","version":1,"id":7,"schema":"\\"string\\"","deleted":false}'
NOOP = '{"keytype":"NOOP","magic":0}'


def schema_key(subject: str, version: int) -> str:
    return f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'


def written(broker: Broker, topic: str) -> list[tuple[str, str | None]]:
    """Keys and values of the topic."""
    return [
        ((each.key or b"").decode(), None if each.value is None else each.value.decode())
        for each in read_topic(broker, topic, committed=True)
    ]


def write(broker: Broker, topic: str, records: list[tuple[str | None, str | None]]) -> None:
    """Put records into the topic as another registry would."""
    with producer(broker, linger_ms=0) as out:
        for key, value in records:
            out.send(
                topic,
                None if value is None else value.encode(),
                None if key is None else key.encode(),
                partition=0,
            )


def make_topic(broker: Broker, topic: str, partitions: int = 1, policy: str = "compact") -> None:
    with admin(broker) as administration:
        settings: Mapping[str, str] = {"cleanup.policy": policy}
        administration.create_topics([NewTopic(topic, partitions, 1, settings)]).all()


def test_records_are_written_as_confluents_registry_writes_them(
    broker: Broker, topic: str, registry: Registry
) -> None:
    registry.register("a", Schema('"string"'))
    registry.set_level(None, CompatibilityLevel.NONE)
    registry.set_config("a", SubjectConfig(CompatibilityLevel.FULL, {"normalize": True}))
    registry.set_mode("a", Mode.READWRITE)
    registry.delete_version("a", 1)
    registry.register(":.c:b", record("x", name="B"))
    metadata = {"properties": {"owner": "ä"}}
    registry.add(":.c:d", referring("B", "b", 1, name="D"), metadata=metadata)
    registry.delete_subject(":.c:d")
    registry.delete_subject(":.c:d", permanent=True)
    inner = json.dumps(record("x", name="B").text)
    outer = json.dumps(referring("B", "b", 1, name="D").text)
    a_config = '{"keytype":"CONFIG","subject":"a","magic":0}'
    a_mode = '{"keytype":"MODE","subject":"a","magic":0}'
    context = '"tenant":"default","context":".c"'
    assert written(broker, topic) == [
        (schema_key("a", 1), A_STRING.replace("7", "1")),
        ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"NONE"}'),
        (a_config, '{"subject":"a","normalize":true,"compatibilityLevel":"FULL"}'),
        (a_mode, '{"subject":"a","mode":"READWRITE"}'),
        (schema_key("a", 1), A_STRING.replace("7", "1").replace("false", "true")),
        (a_mode, None),
        (a_config, None),
        (f'{{"keytype":"CONTEXT",{context},"magic":0}}', f"{{{context}}}"),
        (
            schema_key(":.c:b", 1),
            f'{{"subject":":.c:b","version":1,"id":1,"schema":{inner},"deleted":false}}',
        ),
        (
            schema_key(":.c:d", 1),
            '{"subject":":.c:d","version":1,"id":2,'
            '"references":[{"name":"B","subject":"b","version":1}],'
            f'"metadata":{{"properties":{{"owner":"ä"}}}},"schema":{outer},"deleted":false}}',
        ),
        (
            '{"keytype":"DELETE_SUBJECT","subject":":.c:d","magic":0}',
            '{"subject":":.c:d","version":1}',
        ),
        (schema_key(":.c:d", 1), None),
        (NOOP, '{"maxIds":{".":1,".c":2}}'),
    ]


def test_a_batch_that_cannot_be_read_is_left_out(
    broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_topic(broker, topic)
    write(broker, topic, [(schema_key("a", 1), A_STRING)])
    batch = bytearray(encode_batch([(b"k", b"v", (), 1)]))
    batch[61:] = b"\xff" * (len(batch) - 61)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    with broker.lock:
        log = broker.state.storage.log(TopicPartition(topic, 0))
        log.append(memoryview(batch), origin="coordinator", now_ms=1)
    write(broker, topic, [(schema_key("b", 1), A_STRING.replace('"a"', '"b"'))])
    with Registry(broker, topic=topic) as registry:
        assert registry.subjects() == ["a", "b"]
    assert 'skipped topic "' in caplog.text
    assert ": cannot read offsets 1 to 1" in caplog.text


def test_records_of_confluents_registry_are_read(broker: Broker, topic: str) -> None:
    make_topic(broker, topic)
    proto = json.dumps('syntax = "proto3";\nmessage M {}\n')
    write(
        broker,
        topic,
        [
            (NOOP, None),
            (schema_key("a", 1), A_STRING),
            (
                schema_key("p", 1),
                '{"subject":"p","version":1,"id":8,"schemaType":"PROTOBUF","references":'
                '[{"name":"other.proto","subject":"o","version":3}],"metadata":{"tags":'
                f'{{"f":["PII"]}}}},"schema":{proto},"deleted":false,"createTs":1}}',
            ),
            ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
            (
                '{"keytype":"CONFIG","subject":"a","magic":0}',
                '{"subject":"a","compatibilityLevel":"NONE"}',
            ),
            ('{"keytype":"MODE","subject":"p","magic":0}', '{"mode":"READONLY"}'),
            (
                '{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
                '{"tenant":"default","context":".c"}',
            ),
            (schema_key("d", 1), A_STRING.replace('"a"', '"d"')),
            (
                '{"keytype":"DELETE_SUBJECT","subject":"d","magic":0}',
                '{"subject":"d","version":1}',
            ),
            (schema_key("gone", 1), A_STRING.replace('"a"', '"gone"')),
            (schema_key("gone", 1), None),
            ('{"magic":0,"keytype":"CLEAR_SUBJECT","subject":"e"}', '{"subject":"e"}'),
        ],
    )
    with Registry(broker, topic=topic) as registry:
        assert registry.subjects(deleted=True) == ["a", "d", "p"]
        assert registry.subjects() == ["a", "p"]
        stored = registry.stored("p")
        assert stored.schema.kind is SchemaKind.PROTOBUF
        assert stored.schema.references == (Reference("other.proto", "o", 3),)
        assert stored.metadata == {"tags": {"f": ["PII"]}}
        assert registry.level(None) is CompatibilityLevel.FULL
        assert registry.level("a") is CompatibilityLevel.NONE
        assert registry.mode("p") is Mode.READONLY
        assert registry.contexts() == [".", ".c"]
        assert registry.register("new", Schema('"string"')) == 7
        assert registry.register("new2", Schema('"int"')) == 9
        # The key keeps the spelling that compaction knows it by.
        registry.set_level(None, CompatibilityLevel.NONE)
        keys = [key for key, _ in written(broker, topic)]
        assert keys[-1] == '{"keytype":"CONFIG","subject":null,"magic":0}'


def test_a_text_that_another_registry_stored_is_found_as_it_is(broker: Broker, topic: str) -> None:
    make_topic(broker, topic)
    spaced = Schema('{"type": "record", "name": "A", "fields": []}')
    text = json.dumps(spaced.text)
    write(broker, topic, [(schema_key("a", 1), f'{{"id":7,"schema":{text}}}')])
    with Registry(broker, topic=topic) as registry:
        assert registry.register("a", spaced) == 7
        assert registry.register("b", spaced) == 7
        assert registry.version("b").schema == spaced
        assert registry.register("a", spaced, normalize=True) == 8


BAD_RECORDS = {
    "no key": (None, "{}"),
    "key is no JSON": ("{", None),
    "key is no object": ("[]", None),
    "unknown kind": ('{"keytype":"WHAT","magic":0}', None),
    "value is no JSON": (schema_key("b", 1), "{"),
    "value is no object": (schema_key("b", 1), '"text"'),
    "no schema": (schema_key("b", 1), '{"subject":"b","version":1,"id":3}'),
    "id is no number": (schema_key("b", 1), '{"id":true,"schema":"1"}'),
    "id is too large": (schema_key("b", 1), '{"id":99999999999,"schema":"1"}'),
    "version 0": (schema_key("b", 0), A_STRING),
    "magic 9": ('{"keytype":"SCHEMA","subject":"b","version":1,"magic":9}', A_STRING),
    "unknown language": (schema_key("b", 1), '{"id":9,"schema":"1","schemaType":"XML"}'),
    "references are no list": (schema_key("b", 1), '{"id":9,"schema":"1","references":1}'),
    "reference is no object": (schema_key("b", 1), '{"id":9,"schema":"1","references":[1]}'),
    "metadata is a list": (schema_key("b", 1), '{"id":9,"schema":"1","metadata":[]}'),
    "id of another schema": (schema_key("b", 1), '{"id":7,"schema":"other"}'),
    "unknown level": ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"SOME"}'),
    "unknown mode": ('{"keytype":"MODE","magic":0}', '{"mode":3}'),
    "subject is a number": ('{"keytype":"MODE","subject":1}', '{"mode":"READONLY"}'),
}


def test_bad_records_are_left_out_and_named(
    broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_topic(broker, topic)
    bad = [(key, value) for key, value in BAD_RECORDS.values() if key]  # the broker wants keys
    write(broker, topic, [(schema_key("a", 1), A_STRING), *bad])
    with caplog.at_level(logging.WARNING), Registry(broker, topic=topic) as registry:
        assert registry.all_schemas(deleted=True) == [registry.stored("a")]
    assert [message.split(": ")[0] for message in caplog.messages] == [
        f'skipped topic "{topic}" offset {1 + number}' for number in range(len(bad))
    ]


@pytest.mark.parametrize("name", sorted(set(BAD_RECORDS) - {"id of another schema"}))
def test_a_bad_record_says_what_is_wrong(name: str) -> None:
    key, value = BAD_RECORDS[name]
    with pytest.raises(BadRecord, match=r"."):
        decode(None if key is None else key.encode(), None if value is None else value.encode())


def test_what_is_written_is_read_as_it_was(registry: Registry) -> None:
    assert encode(decode(schema_key("a", 1).encode(), A_STRING.encode())) == (
        schema_key("a", 1).encode(),
        A_STRING.encode(),
    )


@given(st.binary() | st.none(), st.binary() | st.none())
def test_bytes_of_any_kind_are_records_or_bad_records(
    key: bytes | None, value: bytes | None
) -> None:
    with suppress(BadRecord):
        decode(key, value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
KEYTYPES = ["SCHEMA", "CONFIG", "MODE", "DELETE_SUBJECT", "CLEAR_SUBJECT", "CONTEXT", "NOOP"]
NAMES = ["id", "schema", "schemaType", "references", "metadata", "ruleSet", "deleted", "maxIds"]
NAMES += ["subject", "version", "mode", "compatibilityLevel"]


@pytest.mark.slow
@given(
    st.sampled_from(KEYTYPES),
    st.dictionaries(st.sampled_from(["subject", "version", "magic", "context", "tenant"]), JSON),
    st.none() | st.dictionaries(st.sampled_from(NAMES), JSON),
)
def test_fields_of_any_kind_are_records_or_bad_records(
    keytype: str, key: dict[str, object], value: dict[str, object] | None
) -> None:
    state = RegistryState()
    with suppress(BadRecord):
        read = decode(
            json.dumps({"keytype": keytype, **key}).encode(),
            None if value is None else json.dumps(value).encode(),
        )
        state.apply(read)
        again = decode(*encode(read))
        assert again == read or isinstance(read, NoopRecord)


def test_a_topic_that_loses_records_is_refused(broker: Broker, topic: str) -> None:
    make_topic(broker, topic, policy="delete")
    with refused(50001) as _:
        Registry(broker, topic=topic).start()


def test_a_topic_of_several_partitions_is_refused(broker: Broker, topic: str) -> None:
    make_topic(broker, topic, partitions=2)
    with refused(50001):
        Registry(broker, topic=topic).start()


def test_a_registry_that_does_not_run_writes_nothing(broker: Broker, topic: str) -> None:
    idle = Registry(broker, topic=topic)
    with refused(50001, "the registry is not running"):
        idle.register("a", record("x"))
    with idle:
        idle.register("a", record("x"))
    with refused(50001):
        idle.register("a", record("y"))
    idle.close()


def test_a_new_registry_knows_everything_and_fences_the_old_one(broker: Broker, topic: str) -> None:
    with Registry(broker, topic=topic) as old:
        old.register("a", record("x"))
        # As after a kill: nobody closed the old one.
        with Registry(broker, topic=topic) as new:
            assert new.all_schemas() == old.all_schemas()
            assert new.register("a", record("x", "y")) == 2
            message = f'this registry can no longer write to topic "{topic}": another one took over'
            for _ in range(2):
                with refused(50004, message):
                    old.register("b", record("z"))
            # It still answers what it knows.
            assert old.register("a", record("x")) == 1
            assert old.versions("a") == [1]
            assert new.register("b", record("z")) == 3
            # Started anew, it is the one that writes.
            old.close()
            old.start()
            assert old.register("c", record("w")) == 4
            with refused(50004):
                new.register("d", record("v"))


class FailingProducer:
    """A producer whose transactions fail, before they are decided or after."""

    def __init__(self, inner: object, *, decided: bool) -> None:
        self._inner = inner
        self._decided = decided

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def commit_transaction(self) -> None:
        if self._decided:
            self._inner.commit_transaction()  # type: ignore[attr-defined]
        raise RequestTimeout("no answer in time")


@pytest.mark.parametrize("decided", [False, True])
def test_a_write_of_unknown_fate_is_found_out_by_the_next_one(
    registry: Registry, decided: bool
) -> None:
    registry.register("a", record("x"))
    log = registry._log
    log._producer = FailingProducer(log._producer, decided=decided)  # type: ignore[assignment]
    with refused(50001):
        registry.register("a", record("x", "y"))
    assert registry.versions("a") == [1]
    assert registry.register("b", record("z")) == (3 if decided else 2)
    assert registry.versions("a") == ([1, 2] if decided else [1])


def test_ids_are_not_given_twice_after_compaction(broker: Broker, topic: str) -> None:
    with Registry(broker, topic=topic) as registry:
        registry.register("a", record("x"))
        registry.register("b", record("y"))
        registry.delete_subject("b")
        registry.delete_subject("b", permanent=True)
    # What compaction leaves: the last record of each key, and nothing of what was deleted.
    left = dict(written(broker, topic))
    compacted = f"{topic}-compacted"
    make_topic(broker, compacted)
    write(broker, compacted, [(key, value) for key, value in left.items() if value is not None])
    with Registry(broker, topic=compacted) as again:
        assert again.subjects(deleted=True) == ["a"]
        assert again.register("b", record("y")) == 3


def test_what_was_deleted_stays_so_after_compaction(broker: Broker, topic: str) -> None:
    with Registry(broker, topic=topic) as registry:
        registry.set_mode("a", Mode.IMPORT)
        registry.add("a", record("x"), schema_id=1, version=5)
        registry.delete_subject("a")
        registry.set_mode("a", Mode.IMPORT, force=True)
        registry.add("a", record("y"), schema_id=2, version=3)
        registry.delete_subject("a")
        known = registry.all_schemas(deleted=True)
    compacted = f"{topic}-compacted"
    make_topic(broker, compacted)
    last = {key: number for number, (key, _) in enumerate(written(broker, topic))}
    kept = [each for n, each in enumerate(written(broker, topic)) if last[each[0]] == n]
    write(broker, compacted, [(key, value) for key, value in kept])
    with Registry(broker, topic=compacted) as again:
        assert again.all_schemas(deleted=True) == known
        assert again.subjects() == []


def test_threads_that_register_at_once_share_ids(registry: Registry) -> None:
    found: list[dict[int, int]] = []

    def register(worker: int) -> None:
        found.append(
            {each: registry.register(f"s{worker}", record(*"abcdefgh"[:each])) for each in range(8)}
        )

    threads = [threading.Thread(target=register, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(each == found[0] for each in found)
    assert sorted(found[0].values()) == list(range(1, 9))


@pytest.mark.slow
def test_a_registry_works_over_the_network(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path, settings=SETTINGS) as served:
        check_over_the_network(served.bootstrap)


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.xdist_group("kafka")
def test_a_registry_works_on_apache_kafka(kafka_for_all: ApacheKafka) -> None:
    check_over_the_network(kafka_for_all.bootstrap)


def check_over_the_network(bootstrap: str) -> None:
    with Registry(bootstrap) as old:
        assert old.register("a", record("x")) == 1
        with Registry(bootstrap) as new:
            assert new.register("a", record("x", "y")) == 2
            with refused(50004):
                old.register("b", record("z"))
            assert new.delete_subject("a") == [1, 2]
            assert new.delete_subject("a", permanent=True) == [1, 2]
        with Registry(bootstrap) as again:
            assert again.register("a", record("x")) == 3
