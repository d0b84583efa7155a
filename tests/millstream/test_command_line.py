"""The command line against our broker over TCP and a real Kafka: every command, text and JSON."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from click import ClickException
from click.testing import CliRunner, Result

from broker.client import consumer
from broker.errors import BrokerError, ConfigError
from millstream.__main__ import COMMANDS, command_line
from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import PeerMissing, skip_without_peer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("command-line")]


SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
Served = MillstreamBroker | ApacheKafka


@pytest.fixture(
    scope="module", params=["millstream", pytest.param("kafka", marks=pytest.mark.peer)]
)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("command-line")
    if request.param == "millstream":
        with MillstreamBroker(folder, settings=SETTINGS) as broker:
            yield broker
        return
    try:
        kafka = ApacheKafka(folder, settings=SETTINGS)
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    with kafka:
        yield kafka


class Shell:
    """Runs commands against one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._environment = {"MILLSTREAM_BOOTSTRAP": bootstrap, "COLUMNS": "200"}

    def run(self, *arguments: str, text: str = "", code: int = 0) -> str:
        return self.result(*arguments, text=text, code=code).stdout

    def result(self, *arguments: str, text: str = "", code: int = 0) -> Result:
        result = CliRunner().invoke(
            command_line, arguments, input=text, env=self._environment, catch_exceptions=False
        )
        assert result.exit_code == code, result.output
        return result

    def json(self, *arguments: str, text: str = "") -> list[object]:
        output = self.run(*arguments, "--json", text=text)
        return [orjson.loads(line) for line in output.splitlines()]


@pytest.fixture
def shell(served: Served) -> Shell:
    return Shell(served.bootstrap)


def test_every_command_has_help(shell: Shell) -> None:
    for name in COMMANDS:
        assert "Usage" in shell.run(name, "--help")
    assert all(name in shell.run("--help") for name in COMMANDS)


def test_topics_are_created_listed_described_altered_and_deleted(shell: Shell) -> None:
    shell.run("topics", "create", "life", "-p", "2", "-c", "retention.ms=1000")
    (listed,) = shell.json("topics", "list")
    assert {"topic": "life", "partitions": 2, "records": 0, "internal": False} in listed  # type: ignore[operator]
    shell.run("topics", "alter", "life", "-p", "3", "-c", "segment.bytes=2000000")
    (described,) = shell.json("topics", "describe", "life")
    assert isinstance(described, dict)
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2]
    assert described["settings"] == {"retention.ms": "1000", "segment.bytes": "2000000"}
    assert "life" in shell.run("topics", "describe", "life")
    shell.run("topics", "delete", "life", "--yes")
    assert "life" not in shell.run("topics", "list")


def test_a_topic_that_exists_is_refused_unless_if_not_exists_is_set(shell: Shell) -> None:
    shell.run("topics", "create", "twice")
    with pytest.raises(BrokerError, match="exists"):
        shell.run("topics", "create", "twice")
    shell.run("topics", "create", "twice", "--if-not-exists")


@pytest.mark.parametrize(
    ("name", "lines", "values"),
    [
        ("string", "a\nb", ["a", "b"]),
        ("json", '{"x": 1}\n[2]', [{"x": 1}, [2]]),
        ("long", "1\n-2", [1, -2]),
        ("double", "0.5", [0.5]),
        ("hex", "00ff", ["00ff"]),
    ],
)
def test_records_come_back_in_the_format_they_went_in(
    shell: Shell, name: str, lines: str, values: list[object]
) -> None:
    topic = f"format-{name}"
    shell.run("produce", topic, "-F", name, text=lines)
    records = shell.json("consume", topic, "-F", name, "--from-beginning", "--exit")
    assert [record["value"] for record in records] == values  # type: ignore[index]


def test_keys_headers_nulls_and_times_are_kept(shell: Shell) -> None:
    options = ("-K", ":", "-H", "source=test", "--null", "NULL", "--timestamp-ms", "1700000000000")
    shell.run("produce", "keyed", *options, "-z", "zstd", text="alice:1\nbob:NULL\n")
    records = shell.json("consume", "keyed", "--from-beginning", "-n", "2")
    assert records == [
        {
            "topic": "keyed",
            "partition": 0,
            "offset": number,
            "timestamp_ms": 1_700_000_000_000,
            "key": key,
            "value": value,
            "headers": {"source": "test"},
        }
        for number, (key, value) in enumerate((("alice", "1"), ("bob", None)))
    ]
    assert "source=test" in shell.run("consume", "keyed", "--from-beginning", "-n", "1", "-d")


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (("--offset", "2"), ["2", "3"]),
        (("--offset", "-1"), ["3"]),
        (("--from-time", "1970-01-01T00:00:00Z"), ["0", "1", "2", "3"]),
        (("--from-time", "99999999999999"), []),
    ],
)
def test_consume_starts_at_the_given_position(
    shell: Shell, options: tuple[str, ...], values: list[str]
) -> None:
    if not any("places" in line for line in shell.run("topics", "list").splitlines()):
        shell.run("produce", "places", text="0\n1\n2\n3")
    records = shell.json("consume", "places", *options, "--exit")
    assert [record["value"] for record in records] == values  # type: ignore[index]


def test_a_group_has_lag_and_its_offsets_can_be_reset(shell: Shell) -> None:
    shell.run("produce", "lagging", text="\n".join("abcdef"))
    shell.run("consume", "lagging", "--group", "slow", "--from-beginning", "-n", "4")
    (groups,) = shell.json("groups", "list")
    assert any(group["group"] == "slow" for group in groups)  # type: ignore[attr-defined]
    (described,) = shell.json("groups", "describe", "slow")
    assert isinstance(described, dict)
    assert (described["state"], described["lag"]) == ("Empty", 2)
    assert "lagging" in shell.run("groups", "describe", "slow")
    shell.run("groups", "reset-offsets", "slow", "--to-earliest", "--dry-run")
    (moved,) = shell.json("groups", "reset-offsets", "slow", "--shift-by", "-3")
    assert moved == [{"topic": "lagging", "partition": 0, "before": 4, "after": 1}]
    shell.run("groups", "reset-offsets", "slow", "--topic", "lagging:0", "--to-offset", "5")
    shell.run("groups", "delete", "slow", "-y")
    assert "slow" not in shell.run("groups", "list")


def test_settings_change_at_run_time(shell: Shell, served: Served) -> None:
    shell.run("topics", "create", "settings")
    shell.run("configs", "alter", "topic", "settings", "-s", "retention.ms=5")
    shell.run("configs", "alter", "topic", "settings", "--append", "cleanup.policy=compact")
    (rows,) = shell.json("configs", "describe", "topic", "settings")
    assert {row["setting"]: row["value"] for row in rows} == {  # type: ignore[attr-defined]
        "cleanup.policy": "delete,compact",
        "retention.ms": "5",
    }
    node = str(served.node_id) if isinstance(served, ApacheKafka) else "0"
    assert "message.max.bytes" in shell.run("configs", "describe", "broker", node, "--all")
    with pytest.raises(BrokerError):
        shell.run("configs", "alter", "topic", "settings", "-s", "retention.ms=soon")


def test_a_segment_is_dumped_and_damage_is_found(shell: Shell, served: Served) -> None:
    shell.run("produce", "dumped", text="x\ny")
    segment = served.data_dir / "dumped-0" / "00000000000000000000.log"
    batch, *records = shell.json("log", "dump", str(segment), "--records")
    assert isinstance(batch, dict)
    assert (batch["base_offset"], batch["count"]) == (0, 2)
    assert [record["value"] for record in records] == ["x", "y"]  # type: ignore[index]
    assert "all valid" in shell.run("log", "dump", str(segment))
    damaged = served.folder / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    shell.run("log", "dump", str(damaged), code=1)


def test_a_group_may_have_a_name_that_looks_like_markup(shell: Shell) -> None:
    group = "orders-[a-z]+[/var/log]" + "x" * 200
    shell.run("produce", "marked", text="a\nb")
    shell.run("consume", "marked", "-g", group, "--from-beginning", "-n", "1")
    assert group in shell.run("groups", "list")
    assert group in shell.run("groups", "describe", group)
    shell.run("groups", "delete", group, "--yes")


def test_settings_of_a_brokers_file_are_not_defaults(shell: Shell, served: Served) -> None:
    node = str(served.node_id) if isinstance(served, ApacheKafka) else "0"
    (rows,) = shell.json("configs", "describe", "broker", node)
    found = {row["setting"]: row for row in rows}  # type: ignore[attr-defined]
    entry = found["offsets.topic.num.partitions"]
    assert (entry["value"], entry["source"]) == ("4", "file")
    assert not [row for row in rows if row["source"] == "default"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [(), ("--group", "nobody"), ("--from-beginning", "--exit")])
def test_a_topic_that_does_not_exist_is_an_error_of_consume(
    shell: Shell, options: tuple[str, ...]
) -> None:
    said = shell.result("consume", "nosuchtopic", *options, code=1).stderr
    assert 'topic "nosuchtopic" does not exist' in said
    assert "millstream topics create nosuchtopic" in said
    assert "nosuchtopic" not in shell.run("topics", "list")


def test_wrong_use_is_explained(shell: Shell, tmp_path: Path) -> None:
    shell.run("consume", "x", "--group", "g", "--offset", "1", code=2)
    shell.run("topics", "alter", "x", code=2)
    shell.run("produce", "x", "-F", "long", text="word", code=2)
    shell.run("groups", "reset-offsets", "g", code=2)
    other = tmp_path / "file.txt"
    other.touch()
    shell.run("log", "dump", str(other), code=2)
    with pytest.raises(ConfigError, match="retention"):
        shell.run("broker", "-c", "log.retention.hrs=1")


def test_an_application_is_reset_to_read_its_input_again(shell: Shell) -> None:
    inner = ("shop-counts-changelog", "shop-by-user-repartition")
    shell.run("topics", "create", "shop-orders", *inner, "shop-totals")
    shell.run("produce", "shop-orders", text="\n".join("abcdef"))
    shell.run("consume", "shop-orders", "--group", "shop", "--from-beginning", "-n", "4")
    reset = ("streams", "reset", "--application-id", "shop", "--input-topics", "shop-orders")
    (seen,) = shell.json(*reset, "--dry-run")
    moved = {"topic": "shop-orders", "partition": 0, "before": 4, "after": 0}
    assert seen == {"offsets": [moved], "deleted_topics": sorted(inner), "dry_run": True}
    (again,) = shell.json(*reset, "--shift-by", "-3", "--internal-topics", inner[1])
    assert isinstance(again, dict)
    assert again["offsets"] == [{**moved, "after": 1}]
    assert again["deleted_topics"] == [inner[1]]
    (described,) = shell.json("groups", "describe", "shop")
    assert isinstance(described, dict)
    assert described["lag"] == 5
    listed = shell.run("topics", "list")
    assert inner[0] in listed
    assert inner[1] not in listed
    assert "shop-totals" in listed


@pytest.mark.parametrize(
    ("options", "after"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 3),
        (("--to-offset", "2"), 2),
        (("--to-offset", "99"), 3),
        (("--to-datetime", "1970-01-01T00:00:00.150"), 2),
        (("--by-duration", "PT1S"), 3),
    ],
)
def test_a_reset_moves_to_the_given_position(
    shell: Shell, options: tuple[str, ...], after: int
) -> None:
    if "timed" not in shell.run("topics", "list"):
        for time in ("0", "100", "200"):
            shell.run("produce", "timed", "--timestamp-ms", time, text=time)
    names = ("--application-id", "reader", "--input-topics", "timed")
    (seen,) = shell.json("streams", "reset", *names, *options, "--dry-run")
    assert isinstance(seen, dict)
    assert [row["after"] for row in seen["offsets"]] == [after]


def test_a_reset_waits_for_members_to_leave_unless_forced(shell: Shell, served: Served) -> None:
    shell.run("produce", "held", text="a")
    reset = ("streams", "reset", "--application-id", "holder", "--input-topics", "held")
    with consumer(
        served.bootstrap, group_id="holder", auto_offset_reset="earliest", enable_auto_commit=False
    ) as member:
        member.subscribe(["held"])
        while not member.poll(timeout_ms=100):
            pass
        with pytest.raises(ClickException, match="stop all instances"):
            CliRunner().invoke(
                command_line,
                [*reset, "-b", served.bootstrap],
                catch_exceptions=False,
                standalone_mode=False,
            )
        shell.run(*reset, "--force")


def test_wrong_resets_are_explained(shell: Shell) -> None:
    shell.run("topics", "create", "kept")
    reset = ("streams", "reset", "--application-id", "wrong")
    shell.run(*reset, "--to-latest", "--to-offset", "1", code=2)
    shell.run(*reset, "--input-topics", "missing", code=2)
    shell.run(*reset, "--internal-topics", "kept", code=2)
    shell.run(*reset, "--input-topics", "kept", "--by-duration", "1 day", code=2)
