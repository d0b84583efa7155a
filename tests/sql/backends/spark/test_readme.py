"""What sql/README.md says of the source and the sink."""

import re
from pathlib import Path

import pytest

from broker.client import producer
from sql.backends.spark.options import SINK_NAMES, SOURCE_NAMES
from tests.sql.backends.spark.cluster import committed_records, create
from tests.support.peer import REPOSITORY
from tests.support.spark import MARKS, shared_session

TEXT = (REPOSITORY / "sql" / "README.md").read_text()
OWN = {"stage"}  # written by queries, not by users


@pytest.mark.parametrize("name", sorted({*SOURCE_NAMES, *SINK_NAMES} - OWN))
def test_all_options_are_told(name: str) -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in row.split("|")[1] for row in rows)


class TestOnSpark:
    """The program, as it is there."""

    pytestmark = MARKS

    def test_the_program_runs(self, servers: str, tmp_path: Path) -> None:
        shared_session()
        (program,) = [
            block
            for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
            if "readStream" in block
        ]
        create(servers, "orders")
        create(servers, "large-orders")
        with producer(servers) as out:
            out.send("orders", b"small", key=b"1")
            out.send("orders", b"an order of twenty-five eggs", key=b"2")
        program = program.replace("localhost:9092", servers).replace("checkpoints/", f"{tmp_path}/")
        exec(compile(program, "README", "exec"), {})
        written = committed_records(servers, "large-orders")
        assert [(each.key, each.value) for each in written] == [
            (b"2", b"an order of twenty-five eggs")
        ]
