"""Records and their changed copies."""

from connect.data import INT64, STRING
from connect.records import Header, SinkRecord, SourceRecord


def test_a_changed_source_record_is_a_copy() -> None:
    headers = [Header("h", None, "v")]
    record = SourceRecord({"file": "a"}, {"position": 3}, "t", value="line", headers=headers)
    changed = record.changed(topic="other", value_schema=STRING)
    assert record == SourceRecord(
        {"file": "a"}, {"position": 3}, "t", value="line", headers=headers
    )
    assert changed == SourceRecord(
        {"file": "a"}, {"position": 3}, "other", value_schema=STRING, value="line", headers=headers
    )


def test_a_sink_record_knows_where_it_was_read_through_changes() -> None:
    record = SinkRecord("t", 1, None, None, INT64, 5, 42, 1000, "CreateTime")
    changed = record.changed(topic="other", partition=7)
    assert (changed.topic, changed.partition, changed.offset) == ("other", 7, 42)
    original = (changed.original_topic, changed.original_partition, changed.original_offset)
    assert original == ("t", 1, 42)
    assert (changed.value, changed.timestamp_ms, changed.timestamp_type) == (5, 1000, "CreateTime")
