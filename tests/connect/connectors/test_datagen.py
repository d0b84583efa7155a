"""The datagen connector: the same seed gives the same records, at the pace that is set."""

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

import pytest

from broker.clock import ManualClock
from connect.api import ExactlyOnceSupport
from connect.connectors.datagen import DatagenConnector, DatagenTask
from connect.data import Struct
from connect.errors import ConfigError
from connect.records import SourceRecord
from tests.connect.connectors.contexts import HandSourceContext

START_MS = 1_700_000_000_000
FIXED = {"kafka.topic": "t", "max.interval": "0", "seed": "42", "start.time": str(START_MS)}


def started(
    settings: Mapping[str, str],
    *,
    clock: ManualClock | None = None,
    offset: Mapping[str, object] | None = None,
) -> DatagenTask:
    task = DatagenTask(clock or ManualClock())
    partition = {"task.id": int(settings.get("task.id", 0))}
    task.context = HandSourceContext(*([(partition, offset)] if offset else []))
    task.start(settings)
    return task


def take(task: DatagenTask, count: int) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    while len(records) < count:
        records += task.poll() or ()
    return records[:count]


def rows(records: list[SourceRecord]) -> list[object]:
    made: list[object] = []
    for record in records:
        assert isinstance(record.value, Struct)
        record.value.validate()
        made.append((record.key, record.value.to_dict(), record.timestamp_ms))
    return made


@pytest.mark.parametrize(
    ("quickstart", "key_field", "fields"),
    [
        ("users", "userid", "registertime userid regionid gender"),
        ("orders", "orderid", "ordertime orderid itemid orderunits address"),
        ("pageviews", "viewtime", "viewtime userid pageid"),
        (
            "clickstream",
            "ip",
            "ip userid remote_user time _time request status bytes referrer agent",
        ),
        ("stock_trades", "symbol", "side quantity symbol price account userid"),
    ],
)
def test_quickstarts_have_the_fields_and_keys_people_know(
    quickstart: str, key_field: str, fields: str
) -> None:
    record = take(started({**FIXED, "quickstart": quickstart.upper()}), 1)[0]
    assert isinstance(record.value, Struct)
    assert list(record.value.to_dict()) == fields.split()
    assert record.key == record.value[key_field]
    assert record.key_schema == record.value.schema.fields[fields.split().index(key_field)].schema


def test_the_same_seed_gives_the_same_records_and_another_seed_others() -> None:
    settings = {**FIXED, "quickstart": "clickstream", "late.share": "0.3"}
    first = rows(take(started(settings), 5_500))
    assert first == rows(take(started(settings), 5_500))
    assert first != rows(take(started({**settings, "seed": "43"}), 5_500))


@pytest.mark.parametrize("sent", [1, 4_999, 5_000, 6_500])
def test_a_task_that_starts_again_goes_on_with_the_next_record(sent: int) -> None:
    settings = {**FIXED, "quickstart": "orders"}
    whole = take(started(settings), 6_600)
    offset = whole[sent - 1].source_offset
    rest = take(started(settings, offset=offset), 6_600 - sent)
    assert rows(whole[sent:]) == rows(rest)
    assert rest[-1].source_offset == whole[-1].source_offset


def test_a_seed_that_was_drawn_is_kept_in_the_offset() -> None:
    settings = {"kafka.topic": "t", "max.interval": "0", "quickstart": "users"}
    whole = take(started(settings), 100)
    rest = take(started(settings, offset=whole[59].source_offset), 40)
    assert [record.value for record in rest] == [record.value for record in whole[60:]]


def test_tasks_make_different_streams_and_never_the_same_iterated_number() -> None:
    connector = DatagenConnector()
    connector.start({**FIXED, "quickstart": "orders"})
    taken = [take(started(config), 300) for config in connector.task_configs(3)]
    keys = [record.key for records in taken for record in records]
    assert len(keys) == 900
    assert set(keys) == set(range(900))
    assert {record.source_partition["task.id"] for record in taken[2]} == {2}


def test_times_follow_the_rate_from_the_start_time() -> None:
    settings = {**FIXED, "quickstart": "pageviews", "rate": "4"}
    clock = ManualClock()
    task = started({**settings, "start.time": "2023-11-14T22:13:20Z"}, clock=clock)
    records = list(task.poll() or ())
    clock.advance(1_000)
    records += task.poll() or ()
    assert [record.timestamp_ms for record in records[:3]] == [
        START_MS,
        START_MS + 250,
        START_MS + 500,
    ]
    assert all(record.key == record.timestamp_ms for record in records)


def test_without_a_start_time_timestamps_are_the_time_of_the_clock() -> None:
    clock = ManualClock(START_MS)
    settings = {"kafka.topic": "t", "quickstart": "orders", "max.interval": "0"}
    record = take(started(settings, clock=clock), 1)[0]
    assert record.timestamp_ms == START_MS
    assert isinstance(record.value, Struct)
    assert record.value["ordertime"] == START_MS


def test_the_share_of_late_records_is_late_by_at_most_the_maximum() -> None:
    settings = {**FIXED, "quickstart": "users", "late.share": "0.25", "late.max.ms": "5000"}
    late = [
        START_MS + number - (record.timestamp_ms or 0)
        for number, record in enumerate(take(started(settings), 10_000))
    ]
    assert min(late) == 0
    assert 4_900 < max(late) <= 5_000
    assert 0.23 < sum(ms > 0 for ms in late) / len(late) < 0.27


def test_lateness_does_not_change_the_values() -> None:
    settings = {**FIXED, "quickstart": "users"}
    on_time = take(started(settings), 50)
    late = take(started({**settings, "late.share": "1"}), 50)
    assert [record.value for record in on_time] == [record.value for record in late]


@pytest.mark.parametrize(
    ("quickstart", "key_field", "example"),
    [("users", "", "User_50"), ("orders", "", 49), ("stock_trades", "", "symbol_50")],
)
def test_the_number_of_keys_is_what_is_set(
    quickstart: str, key_field: str, example: object
) -> None:
    settings = {**FIXED, "quickstart": quickstart, "keys": "50", "schema.keyfield": key_field}
    keys = {record.key for record in take(started(settings), 5_000)}
    assert len(keys) == 50
    assert example in keys


def test_a_rate_is_kept_and_a_long_pause_is_not_made_up_for() -> None:
    clock = ManualClock()
    task = started({**FIXED, "quickstart": "users", "rate": "500"}, clock=clock)
    sent = len(task.poll() or ())
    for _ in range(40):
        clock.advance(50)
        sent += len(task.poll() or ())
    assert sent == 1_001
    clock.advance(3_600_000)
    assert len(task.poll() or ()) == 500


def test_the_rate_of_a_connector_is_shared_by_its_tasks() -> None:
    clock = ManualClock()
    connector = DatagenConnector()
    connector.start({**FIXED, "quickstart": "users", "rate": "100"})
    tasks = [started(config, clock=clock) for config in connector.task_configs(2)]
    sent = sum(len(task.poll() or ()) for task in tasks)
    clock.advance(1_000)
    sent += sum(len(task.poll() or ()) for task in tasks)
    assert sent == len(tasks) + 100


def test_intervals_are_random_up_to_the_maximum() -> None:
    clock = ManualClock()
    settings = {"kafka.topic": "t", "quickstart": "users", "max.interval": "100"}
    task = started(settings, clock=clock)
    sent = 0
    for _ in range(100):
        clock.advance(100)
        sent += len(task.poll() or ())
    assert 150 < sent < 250


def test_a_wait_for_the_next_record_ends_when_the_task_is_stopped() -> None:
    task = started({"kafka.topic": "t", "quickstart": "users", "rate": "0.001"})
    assert len(task.poll() or ()) == 1
    waiting = Thread(target=task.poll)
    waiting.start()
    task.stop()
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_task_that_has_made_its_iterations_idles() -> None:
    clock = ManualClock()
    task = started({**FIXED, "quickstart": "users", "iterations": "7"}, clock=clock)
    assert len(task.poll() or ()) == 7
    task.stop()
    assert task.poll() is None


def test_a_schema_of_ones_own_is_taken_from_the_settings_or_a_file(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "sensor",
        "fields": [
            {"name": "id", "type": {"type": "string", "arg.properties": {"regex": "s[0-9]"}}},
            {"name": "at", "type": {"type": "long", "arg.properties": {"time": True}}},
        ],
    }
    file = tmp_path / "sensor.avsc"
    file.write_text(json.dumps(schema))
    for source in ({"schema.string": json.dumps(schema)}, {"schema.filename": str(file)}):
        record = take(started({**FIXED, **source, "schema.keyfield": "id", "keys": "1"}), 1)[0]
        assert record.key == "s1"
        assert isinstance(record.value, Struct)
        assert record.value.to_dict() == {"id": "s1", "at": START_MS}
    keyless = take(started({**FIXED, "schema.string": json.dumps(schema)}), 1)[0]
    assert keyless.key is None


@pytest.mark.parametrize(
    ("settings", "name", "why"),
    [
        ({}, "quickstart", "no schema set"),
        ({"quickstart": "users", "schema.string": "{}"}, "quickstart", "quickstart and schema"),
        ({"schema.filename": "nowhere.avsc"}, "schema.filename", "Unable to find the schema file"),
        ({"schema.string": "{"}, "schema.string", "Unable to parse the provided schema"),
        ({"quickstart": "users", "schema.keyfield": "id"}, "quickstart", 'no field "id"'),
        ({"quickstart": "pageviews", "keys": "5"}, "quickstart", "its type is the record's time"),
        ({"quickstart": "users", "start.time": "noon"}, "start.time", '"noon" is not a valid time'),
    ],
)
def test_a_wrong_configuration_is_found_before_anything_starts(
    settings: dict[str, str], name: str, why: str
) -> None:
    found = DatagenConnector().validate({"kafka.topic": "t", **settings})
    assert list(found) == [name]
    assert why in found[name][0]
    with pytest.raises(ConfigError):
        DatagenConnector().start({"kafka.topic": "t", **settings})


def test_an_unknown_quickstart_is_refused_with_the_list_of_known_ones() -> None:
    with pytest.raises(ConfigError, match="STOCK_TRADES"):
        DatagenConnector().start({"kafka.topic": "t", "quickstart": "weather"})
    assert DatagenConnector().validate({"kafka.topic": "t", "quickstart": "weather"}) == {}


def test_exactly_once_is_supported() -> None:
    assert DatagenConnector().exactly_once_support({}) is ExactlyOnceSupport.SUPPORTED
