"""What sql/README.md says of the source and the sink."""

import re
from pathlib import Path

import pytest

from broker.client import producer
from sql.backends.spark.options import SINK_NAMES, SOURCE_NAMES
from tests.sql.backends.spark.cluster import SETTINGS, committed_records, create
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY
from tests.support.spark import MARKS, shared_session

TEXT = (REPOSITORY / "sql" / "README.md").read_text()
OWN = {"stage", "packing", "purged_topics"}  # written by queries, not by users


@pytest.mark.parametrize("name", sorted({*SOURCE_NAMES, *SINK_NAMES} - OWN))
def test_all_options_are_documented(name: str) -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in row.split("|")[1] for row in rows)


def run_program(servers: str, folder: Path) -> None:
    """The program that copies large orders."""
    (program,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
        if "readStream" in block
    ]
    program = program.replace("localhost:9092", servers).replace("checkpoints/", f"{folder}/")
    exec(compile(program, "README", "exec"), {})


class TestOnSpark:
    """The program, as it is there."""

    pytestmark = MARKS

    def test_the_program_runs(self, servers: str, tmp_path: Path) -> None:
        shared_session()
        create(servers, "orders")  # the broker creates the other one
        with producer(servers) as out:
            out.send("orders", b"small", key=b"1")
            out.send("orders", b"an order of twenty-five eggs", key=b"2")
        run_program(servers, tmp_path)
        written = committed_records(servers, "large-orders")
        assert [(each.key, each.value) for each in written] == [
            (b"2", b"an order of twenty-five eggs")
        ]

    def test_a_topic_that_does_not_exist_is_named_at_once(self, tmp_path: Path) -> None:
        from pyspark.errors import PySparkException

        shared_session()
        settings = {**SETTINGS, "auto.create.topics.enable": "false"}
        with MillstreamBroker(tmp_path / "broker", settings=settings) as broker:
            create(broker.bootstrap, "orders")
            with producer(broker.bootstrap) as out:
                out.send("orders", b"an order of twenty-five eggs", key=b"2")
            with pytest.raises(PySparkException) as refused:
                run_program(broker.bootstrap, tmp_path)
        shown = str(refused.value)
        assert 'topic "large-orders" does not exist' in shown
        assert "TxnOffsetCommit" not in shown
