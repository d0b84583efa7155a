"""Commands as processes: only printed records are committed; a closed pipe is not an error."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from broker.client import admin, consumer, producer
from broker.client.api import NewTopic
from broker.model import TopicPartition
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("command-line")]

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
RECORDS = 2_000
DEADLINE_S = 120.0
GROUPS = (f"pipe-{number}" for number in count())


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillstreamBroker]:
    with MillstreamBroker(tmp_path_factory.mktemp("pipes"), settings=SETTINGS) as broker:
        with admin(broker.bootstrap) as administration:
            topics = [NewTopic("numbers", partitions=1), NewTopic("spread", partitions=3)]
            administration.create_topics(topics).all()
        with producer(broker.bootstrap) as out:
            for number in range(RECORDS):
                value = f"{number:05} {'x' * 500}".encode()
                out.send("numbers", value)
                out.send("spread", value, partition=number % 3)
        yield broker


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "millstream", *arguments]


def started(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments), cwd=REPOSITORY, stdout=stdout, stderr=subprocess.PIPE
    )


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The exit code, and what was said on standard error."""
    _, errors = process.communicate(timeout=DEADLINE_S)
    return process.returncode, errors.decode()


def committed(broker: MillstreamBroker, group: str, topic: str, partitions: int = 1) -> int:
    with consumer(broker.bootstrap, group_id=group) as reader:
        wanted = [TopicPartition(topic, number) for number in range(partitions)]
        return sum(each.offset for each in reader.committed(wanted).values() if each is not None)


def piped_into(reader: Sequence[str], *arguments: str) -> tuple[int, str, list[str]]:
    """A command in front of a pipe: its exit code, its errors, and the lines of the reader."""
    process = started(*arguments)
    assert process.stdout is not None
    with process.stdout as pipe:
        last = subprocess.run(
            reader, stdin=pipe, capture_output=True, text=True, timeout=DEADLINE_S, check=True
        )
    process.stdout = None
    return *ended(process), last.stdout.splitlines()


@pytest.mark.parametrize("topic", ["numbers", "spread"])
def test_head_has_exactly_what_the_group_has_committed(
    broker: MillstreamBroker, topic: str
) -> None:
    group = next(GROUPS)
    consume = ("consume", topic, "-g", group, "--from-beginning", "-b", broker.bootstrap)
    seen, ends = [], []
    for _ in range(3):  # each goes on where the one before ended
        code, errors, lines = piped_into(["head", "-n", "5"], *consume)
        ends.append((code, errors, len(lines)))
        seen += lines
    assert len({*seen}) == 15
    assert committed(broker, group, topic, partitions=3 if topic == "spread" else 1) == 15
    assert ends == [(0, "", 5)] * 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_signal_ends_a_consumer_that_has_committed_what_it_printed(
    broker: MillstreamBroker, number: signal.Signals, as_json: bool
) -> None:
    group = next(GROUPS)
    options = ["--json"] if as_json else []
    process = started(
        "consume", "numbers", "-g", group, "--from-beginning", "-b", broker.bootstrap, *options
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(20)]
    process.send_signal(number)
    lines += process.stdout.readlines()
    end = ended(process)
    assert lines[-1].endswith(b"\n")
    assert 20 <= len(lines) < RECORDS
    assert committed(broker, group, "numbers") == len(lines)
    assert end == (128 + number, "")


def test_a_signal_ends_a_consumer_whose_output_is_not_read(broker: MillstreamBroker) -> None:
    group = next(GROUPS)
    process = started("consume", "numbers", "-g", group, "--from-beginning", "-b", broker.bootstrap)
    assert process.stdout is not None
    first = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=DEADLINE_S) == 128 + signal.SIGINT
    lines = (first + process.stdout.read()).splitlines()
    assert ended(process) == (128 + signal.SIGINT, "")
    # A line that stays in the pipe may be read or not: it is printed again.
    assert 0 <= len(lines) - committed(broker, group, "numbers") <= 1


def test_a_count_commits_exactly_as_many_records(broker: MillstreamBroker, tmp_path: Path) -> None:
    group = next(GROUPS)
    consume = ("consume", "numbers", "-g", group, "--from-beginning", "-b", broker.bootstrap)
    for number in (1, 2):
        with open(tmp_path / "lines", "wb") as out:
            assert ended(started(*consume, "-n", "7", stdout=out.fileno())) == (0, "")
        lines = (tmp_path / "lines").read_text().splitlines()
        assert [int(line[1:6]) for line in lines] == [*range(7 * (number - 1), 7 * number)]
        assert committed(broker, group, "numbers") == 7 * number


def test_a_disk_that_is_full_commits_nothing(broker: MillstreamBroker) -> None:
    group = next(GROUPS)
    with open("/dev/full", "wb") as full:
        process = started(
            "consume",
            "numbers",
            *("-g", group, "--from-beginning", "-n", "7", "-b", broker.bootstrap),
            stdout=full.fileno(),
        )
        code, errors = ended(process)
    assert code == 1
    assert "standard output" in errors
    assert "No space left on device" in errors
    assert committed(broker, group, "numbers") == 0


def test_a_group_that_is_not_to_commit_does_not(broker: MillstreamBroker) -> None:
    group = next(GROUPS)
    process = started(
        "consume",
        "numbers",
        *("-g", group, "--from-beginning", "-n", "7", "-b", broker.bootstrap),
        *("-X", "enable.auto.commit=false"),
    )
    assert process.stdout is not None
    assert len(process.stdout.readlines()) == 7
    assert ended(process) == (0, "")
    assert committed(broker, group, "numbers") == 0


def test_a_reader_that_leaves_is_not_an_error_of_any_command(broker: MillstreamBroker) -> None:
    log = next(broker.data_dir.glob("numbers-0/*.log"))
    for arguments in (
        ("consume", "numbers", "--from-beginning", "-b", broker.bootstrap),
        ("consume", "numbers", "--from-beginning", "--json", "-b", broker.bootstrap),
        ("log", "dump", str(log), "--records"),
        ("log", "dump", str(log), "--records", "--json"),
        ("topics", "list", "-b", broker.bootstrap),
    ):
        code, errors, _ = piped_into(["head", "-n", "1"], *arguments)
        assert (code, errors) == (0, ""), arguments
        code, errors, _ = piped_into(["true"], *arguments)
        assert (code, errors) == (0, ""), arguments


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_producer_that_has_written_what_it_read(
    broker: MillstreamBroker, number: signal.Signals
) -> None:
    topic = f"typed-{number}"
    process = subprocess.Popen(
        command("produce", topic, "-b", broker.bootstrap, "-X", "linger.ms=60000"),
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"".join(b"%d\n" % each for each in range(100)))
    process.stdin.flush()
    # The first line is read: the topic is created then.
    with admin(broker.bootstrap) as administration:
        wait_until(lambda: topic in administration.list_topics(), "the first record")
    process.send_signal(number)
    code, errors = ended(process)
    assert code == 128 + number
    assert errors == f'interrupted: {end_offset(broker, topic)} records to "{topic}"\n'
    assert end_offset(broker, topic) > 0


def test_records_that_are_not_acknowledged_are_counted(broker: MillstreamBroker) -> None:
    lines = ["fits", "x" * 2_000_000, *["after"] * 10]
    process = subprocess.run(
        command("produce", "sizes", "-b", broker.bootstrap, "-X", "max.request.size=3000000"),
        cwd=REPOSITORY,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (process.returncode, process.stdout) == (1, "")
    written = end_offset(broker, "sizes")
    assert f"{written} were; the first failed" in process.stderr
    assert "were not acknowledged" in process.stderr


def test_an_invalid_line_says_how_many_were_written(broker: MillstreamBroker) -> None:
    process = subprocess.run(
        command("produce", "longs", "-b", broker.bootstrap, "-F", "long"),
        cwd=REPOSITORY,
        input="1\n2\nword\n3\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert process.returncode == 2
    assert '"word" is not a long' in process.stderr
    assert "2 records were written before" in process.stderr
    assert end_offset(broker, "longs") == 2


def end_offset(broker: MillstreamBroker, topic: str) -> int:
    with consumer(broker.bootstrap) as reader:
        return sum(reader.end_offsets([TopicPartition(topic, 0)]).values())


@pytest.mark.parametrize(
    "statements",
    [
        "LIST FUNCTIONS;",
        "SELECT * FROM S EMIT CHANGES;",
        "SELECT * FROM S;",
        "PRINT 's' FROM BEGINNING;",
    ],
)
def test_a_reader_that_leaves_is_not_an_error_of_the_shell(tmp_path: Path, statements: str) -> None:
    create = (
        "SET 'auto.offset.reset'='earliest'; CREATE STREAM S (A INT) "
        "WITH (kafka_topic='s', partitions=1, value_format='JSON'); INSERT INTO S VALUES (1);"
    )
    code, errors, _ = piped_into(
        ["true"], "sql", "--data-dir", str(tmp_path), "-e", create + statements
    )
    assert (code, errors) == (0, "")
