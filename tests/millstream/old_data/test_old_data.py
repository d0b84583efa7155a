"""Data directories and command logs of earlier versions open and go on, whatever is set now."""

import tarfile
from pathlib import Path

import httpx
import orjson
import pytest

from broker.client import admin, consumer
from broker.model import TopicPartition
from tests.millstream.crash.up_process import UpProcess
from tests.millstream.old_data.contents import (
    BILLING,
    DEFAULTS,
    HELD,
    LINES,
    MOVED,
    ORDERS,
    PATIENCE_S,
    SCHEMA,
    SETTINGS,
    SHRUNK,
    SHRUNK_END,
    SHRUNK_TO,
    end_of,
    query_of,
    sinks,
    states,
    wait_results,
    write_lines,
    write_orders,
)
from tests.support.peer import REPOSITORY, wait_until
from tests.support.topics import read_topic

pytestmark = pytest.mark.slow

ARCHIVES = sorted((REPOSITORY / "tests" / "cases" / "data_directories").glob("*.tar.xz"))
# What a restart must not do to queries that exist.
OTHER_DEFAULTS = {
    "sql.ksql.persistence.default.format.value": "AVRO",
    "sql.ksql.persistence.default.format.key": "JSON",
    "sql.ksql.output.topic.name.prefix": "other-",
}
SINKS = {
    "ORDERS": ("orders", "KAFKA", "JSON"),
    "CUSTOMERS": ("customers", "KAFKA", "JSON"),
    **{
        name: (name, "KAFKA", "JSON")
        for name in ("BIG", "TOTALS", "HOURLY", "SIZES", "ENRICHED", "HELD")
    },
}


def check_records(up: UpProcess) -> None:
    """Topics, groups and transactions are what they were."""
    with consumer(up.bootstrap) as reader, admin(up.bootstrap) as cluster:
        assert reader.beginning_offsets([SHRUNK]) == {SHRUNK: SHRUNK_TO}
        assert reader.end_offsets([SHRUNK]) == {SHRUNK: SHRUNK_END}
        committed = cluster.list_group_offsets("billing")
        assert committed[BILLING].offset == 5
    assert values(up, SHRUNK) == [b"%d" % number for number in range(SHRUNK_TO, SHRUNK_END)]
    assert values(up, MOVED) == [b"kept", b"kept too"]


def values(up: UpProcess, partition: TopicPartition) -> list[bytes | None]:
    """All committed values of a partition."""
    topic, number = partition
    records = read_topic(up.bootstrap, topic, committed=True, timeout_s=PATIENCE_S)
    return [record.value for record in records if record.partition == number]


def check_sql(up: UpProcess, orders: int, *, held: int) -> None:
    """Streams, tables, queries and their results are what they were."""
    assert sinks(up) == SINKS
    wait_results(up, orders, held=held)
    found = states(up)
    assert found.pop("HELD") == ("PAUSED" if held < orders else "RUNNING")
    assert {*found.values()} == {"RUNNING"}


def lines_of(up: UpProcess) -> list[str]:
    """What the connector has read."""
    return [orjson.loads(value or b"") for value in values(up, TopicPartition("lines", 0))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "archive",
    [
        # After a kill the members of groups are there until their sessions end, for 45 s.
        pytest.param(path, id=name, marks=[pytest.mark.long] if name.endswith(".killed") else [])
        for path in ARCHIVES
        for name in [path.name.removesuffix(".tar.xz")]
    ],
)
def test_a_data_directory_of_an_earlier_version_opens_and_goes_on(
    archive: Path, tmp_path: Path
) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    up = UpProcess(tmp_path, SETTINGS)
    try:
        up.start(DEFAULTS)
        up.wait_ready()
        check_records(up)
        check_sql(up, ORDERS, held=HELD)
        url = f"{up.url('registry')}/subjects/old-value/versions/1"
        assert httpx.get(url, timeout=PATIENCE_S).json()["schema"] == SCHEMA
        write_lines(up, range(LINES, LINES + 5))
        wait_until(lambda: end_of(up, "lines") == LINES + 5, "new lines", timeout_s=PATIENCE_S)
        assert lines_of(up) == [f"line {number}" for number in range(LINES + 5)]
        up.sql(f"RESUME {query_of(up, 'HELD')};")
        write_orders(up.bootstrap, range(ORDERS, ORDERS + 10))
        check_sql(up, ORDERS + 10, held=ORDERS + 10)
        up.stop()
        # The formats and topics of existing queries are pinned now: other defaults change nothing.
        up.start(OTHER_DEFAULTS)
        up.wait_ready()
        write_orders(up.bootstrap, range(ORDERS + 10, ORDERS + 20))
        check_sql(up, ORDERS + 20, held=ORDERS + 20)
        check_records(up)
        up.stop()
    except BaseException as error:
        error.add_note(up.tail())
        raise
    finally:
        up.discard()
